"""`hexnpu emu-cc`: compiles DSP sources for the emulator.

    command.py      the command
    arguments.py    the command line of a Hexagon compiler, sorted into what counts here and what does not
    driver.py       preprocess, translate, compile; or link a DSP library
    scan.py         finds the asm statements of a preprocessed file
    statement.py    one asm statement: template, operands, clobbers
    packets.py      its template: labels, packets, instructions
    registers.py    operands and registers as C variables; reads before writes within a packet
    values.py       C expressions between an operand's type and a register's bits
    forms.py        instructions with a C form of their own
    matrix.py       the packets of the matrix unit (HMX)
    intrinsics.py   every other instruction that has an intrinsic
    translate.py    a whole file
    sdk_root.py     a folder in the shape of the Hexagon SDK
"""
