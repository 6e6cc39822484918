"""What the numbers in FastRPC's and the NPU's error messages mean.

Numbers and names are those of inc/AEEStdErr.h in https://github.com/qualcomm/fastrpc (BSD-3-Clause); words are ours.
The NPU side adds OFFSET to a code, the host side does not; a few codes have no offset on either side. A code printed as
a negative decimal is the same 32 bits. Codes from -1 to -1023 are the Linux kernel's errno.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from hexnpu.errors import UsageError

SOURCE = "https://github.com/qualcomm/fastrpc inc/AEEStdErr.h"
OFFSET = 0x80000400
LAST = 0x3FF

# code, name, meaning
_TABLE = """
0x001 AEE_EFAILED failed, without saying why
0x002 AEE_ENOMEMORY out of memory
0x003 AEE_ECLASSNOTSUPPORT the class is not supported
0x004 AEE_EVERSIONNOTSUPPORT the version is not supported
0x005 AEE_EALREADYLOADED loaded already
0x006 AEE_EUNABLETOLOAD a library cannot be loaded
0x007 AEE_EUNABLETOUNLOAD a library cannot be unloaded
0x008 AEE_EALARMPENDING an alarm is pending
0x009 AEE_EINVALIDTIME invalid time
0x00A AEE_EBADCLASS the class object is NULL
0x00B AEE_EBADMETRIC invalid metric
0x00C AEE_EEXPIRED expired
0x00D AEE_EBADSTATE a process or thread is not in the state that this needs (of a call: the DSP's code has crashed)
0x00E AEE_EBADPARM invalid parameter
0x00F AEE_ESCHEMENOTSUPPORTED the scheme of the URL is not supported
0x010 AEE_EBADITEM value out of range
0x011 AEE_EINVALIDFORMAT invalid format
0x012 AEE_EINCOMPLETEITEM incomplete: a string or an item is shorter than it should be
0x013 AEE_ENOPERSISTMEMORY too little flash memory
0x014 AEE_EUNSUPPORTED not supported: the function is not implemented there
0x015 AEE_EPRIVLEVEL the privileges do not suffice
0x016 AEE_ERESOURCENOTFOUND a resource was not found
0x017 AEE_EREENTERED a function was entered again that cannot be
0x018 AEE_EBADTASK called from the wrong task
0x019 AEE_EALLOCATED memory was still allocated at the release
0x01A AEE_EALREADY under way already
0x01B AEE_EADSAUTHBAD mutual authorization failed
0x01C AEE_ENEEDSERVICEPROG the service must be programmed first
0x01D AEE_EMEMPTR bad memory pointer
0x01E AEE_EHEAP the heap is corrupt
0x01F AEE_EIDLE the context is idle
0x020 AEE_EITEMBUSY busy
0x021 AEE_EBADSID invalid subscriber
0x022 AEE_ENOTYPE no type found
0x023 AEE_ENEEDMORE more data is needed
0x024 AEE_EADSCAPS capabilities do not match
0x025 AEE_EBADSHUTDOWN not closed properly
0x026 AEE_EBUFFERTOOSMALL the buffer is too small
0x028 AEE_EACKPENDING an acknowledgement is pending
0x029 AEE_ENOTOWNER not the owner
0x02A AEE_EINVALIDITEM the item is invalid
0x02B AEE_ENOTALLOWED not allowed
0x02C AEE_EINVHANDLE invalid handle
0x02D AEE_EOUTOFHANDLES no handle is free
0x02F AEE_ENOMORE there are no more items
0x030 AEE_ECPUEXCEPTION the processor raised an exception: the code crashed
0x031 AEE_EREADONLY cannot be changed
0x032 AEE_EINVALIDMSG invalid message from the host
0x033 AEE_EINVALIDTHREAD invalid thread
0x034 AEE_EINVALIDPROCESS invalid process
0x035 AEE_EINVALIDFILENAME invalid file name
0x036 AEE_EINVALIDDIGESTSIZE invalid size of a digest
0x037 AEE_EINVALIDSEGS invalid segments
0x038 AEE_EINVALIDSIGNATURE invalid signature
0x039 AEE_EINVALIDDOMAIN invalid DSP domain
0x03A AEE_EINVALIDFD invalid file descriptor
0x03B AEE_EINVALIDDEVICE the domain's device cannot be opened
0x03C AEE_EINVALIDMODE invalid mode
0x03D AEE_EINVALIDPROCNAME invalid process name
0x03E AEE_ENOSUCHMOD no such module
0x03F AEE_ENOSUCHINSTANCE no such instance
0x040 AEE_ENOSUCHTHREAD no such thread
0x041 AEE_ENOSUCHPROCESS no such process
0x042 AEE_ENOSUCHSYMBOL no such symbol in the library
0x043 AEE_ENOSUCHDEVICE no such device
0x044 AEE_ENOSUCHPROP no such property
0x045 AEE_ENOSUCHFILE no such file
0x046 AEE_ENOSUCHHANDLE no such handle
0x047 AEE_ENOSUCHSTREAM no such stream
0x048 AEE_ENOSUCHMAP the DSP has no mapping for this address
0x049 AEE_ENOSUCHREGISTER no such register
0x04A AEE_ENOSUCHCLIENT no such client
0x04B AEE_EBADDOMAIN the domain is not initialized
0x04C AEE_EBADOFFSET bad offset in a buffer, page or heap
0x04D AEE_EBADSIZE bad size of a buffer, page or heap
0x04E AEE_EBADPERMS bad permissions of a file, mapping or memory
0x04F AEE_EBADFD bad file descriptor
0x050 AEE_EBADPID bad process number
0x051 AEE_EBADTID bad thread number
0x052 AEE_EBADELF bad ELF file
0x053 AEE_EBADASID bad address space
0x054 AEE_EBADCONTEXT bad context
0x055 AEE_EBADMEMALIGN bad alignment in memory
0x056 AEE_EIOCTL an ioctl failed
0x057 AEE_EFOPEN a file or the domain's device cannot be opened
0x058 AEE_EFGETS reading a line failed
0x059 AEE_EFFLUSH flushing a file failed
0x05A AEE_EFCLOSE closing a file failed
0x05B AEE_EEOF end of file
0x05C AEE_EFREAD reading a file failed
0x05D AEE_EFWRITE writing a file failed
0x05E AEE_EFGETPOS asking for the place in a file failed
0x05F AEE_EFSETPOS setting the place in a file failed
0x060 AEE_EFTELL asking for the place in a file failed
0x061 AEE_EFSEEK setting the place in a file failed
0x062 AEE_EFLEN a file is longer than expected
0x063 AEE_EGETENV an environment variable cannot be read
0x064 AEE_ESETENV an environment variable cannot be set
0x065 AEE_EMMAP mapping memory failed
0x066 AEE_EIONMAP mapping shared memory failed
0x067 AEE_EIONALLOC allocating shared memory failed
0x068 AEE_ENORPCMEMORY no shared (RPC) memory is left
0x069 AEE_ENOROOTOFTRUST no root of trust to verify the signature
0x06A AEE_ENOTLOCKED unlocked what was not locked
0x06B AEE_ENOTINITIALIZED not initialized
0x06C AEE_EUNSUPPORTEDAPI the request is not supported
0x06D AEE_EUNPACK a command cannot be unpacked
0x06E AEE_EPOLL waiting for an event failed
0x06F AEE_EEVENTREAD reading an event failed
0x070 AEE_EMAXBUFS too many buffers
0x071 AEE_EINVARGS invalid arguments
0x072 AEE_ECONNREFUSED the DSP refused the connection
0x081 AEE_EUNSIGNEDMOD the library is not signed, and no test signature was found
0x082 AEE_EINVALIDHASH the library's hash is invalid, and no test signature was found
0x083 AEE_EBADVA bad virtual address
0x084 AEE_ENOSUCHJOB no such job, or no such group of static processes
0x085 AEE_EBADMAPREFCNT bad reference count of a mapping
0x086 AEE_EBADPAGECNT bad number of pages
0x087 AEE_EMAPALREADYPRESENT mapped already
0x088 AEE_ENOFREESECTION no section is free
0x089 AEE_U2GCLIENT_OPEN opening the u2g client failed
0x08A AEE_ENOSESSION no session is free
0x100 AEE_ESMD_OFFSET the first of the link errors (SMD, GLINK)
0x101 AEE_ESMDBADPACKET invalid packet size on the link (SMD, GLINK)
0x102 AEE_ESMDALREADYOPEN the link's port is open already (SMD, GLINK)
0x103 AEE_ESMDOPENFAILED the link's port cannot be opened (SMD, GLINK)
0x104 AEE_EGLINKWRITE writing to the link failed
0x105 AEE_EGLINKREGISTER registering the link's callback failed
0x121 AEE_EDALDEVATTACH attaching a device (DAL) failed
0x122 AEE_EDALINTREGISTER registering an interrupt (DAL) failed
0x123 AEE_EDALINTUNREGISTER unregistering an interrupt (DAL) failed
0x124 AEE_EDALGETPROP reading a property (DAL) failed
0x125 AEE_EDALGETVAL reading a property's value (DAL) failed
0x126 AEE_EDCVSREQUEST a request for a clock or voltage (DCVS) failed
0x141 AEE_EQURTREGIONCREATE QuRT: creating a region failed
0x142 AEE_EQURTCACHECLEAN QuRT: cleaning the cache failed
0x143 AEE_EQURTREGIONGETATTR QuRT: reading a region's attributes failed
0x144 AEE_EQURTBADREGIONPERMS QuRT: bad permissions of a region
0x145 AEE_EQURTMEMPOOLADD QuRT: adding to a memory pool failed
0x146 AEE_EQURTREGISTERDEV QuRT: registering a device failed
0x147 AEE_EQURTMEMPOOLCREATE QuRT: creating a memory pool failed
0x148 AEE_EQURTGETVA QuRT: asking for a virtual address failed
0x149 AEE_EQURTREGIONDELETE QuRT: deleting a region failed
0x14A AEE_EQURTMEMPOOLATTACH QuRT: attaching a memory pool failed
0x14B AEE_EQURTTHREADCREATE QuRT: creating a thread failed
0x14C AEE_EQURTCOPYTOUSER QuRT: copying to user memory failed
0x14D AEE_EQURTMEMMAPCREATE QuRT: creating a mapping failed
0x14E AEE_EQURTINVHANDLE QuRT: invalid handle of a client
0x14F AEE_EQURTBADASID QuRT: bad address space
0x150 AEE_EQURTOPENFAILED QuRT: opening a QDI device failed
0x151 AEE_EQURTCOPYFROMUSER QuRT: copying from user memory failed
0x152 AEE_EQURTLINELOCK QuRT: locking cache lines failed
0x153 AEE_EQURTQDIDEFMETHOD QuRT: the default method of QDI failed
0x154 AEE_EQURTCREATEHANDLE QuRT: no handle for an object
0x155 AEE_EQURTWRITABLEMEM QuRT: writable memory cannot become secure
0x156 AEE_EQURTTHREADCREATEDEF QuRT: creating a thread failed
0x157 AEE_EQURTLOOKUPVA QuRT: looking up a virtual address failed
0x158 AEE_EQURTLOOKUPPA QuRT: looking up a physical address failed
0x159 AEE_EQURTMIGRATESECURE QuRT: moving memory to the secure zone failed
0x160 AEE_EQURTQDIOPEN QuRT: opening a QDI device failed
0x161 AEE_EQURTMAPREMOVE QuRT: removing a mapping failed
0x162 AEE_EQURTQDICLOSE QuRT: closing a QDI device failed
0x163 AEE_EQURTWAIT QuRT: waiting on a futex failed
0x171 AEE_EMMPMREQUEST a request for power (MMPM) failed
0x172 AEE_EMMPMRELEASE giving back power (MMPM) failed
0x173 AEE_EMMPMSETPARAM setting a power parameter (MMPM) failed
0x174 AEE_EMMPMREGISTER registering for power (MMPM) failed
0x175 AEE_EMMPMGETINFO asking for power information (MMPM) failed
0x176 AEE_EMAX_MMPM_CLIENTS too many power clients (MMPM) in one process
0x177 AEE_EDCVSREGISTER registering for clocks and voltages (DCVS) failed
0x178 AEE_PDRREGFAIL registering for a process's restarts failed
0x180 AEE_DEFAULT_PROCESS the guest OS has no default process
0x181 AEE_ENULLCONTEXT a vote without a context
0x190 E_APPS_BUSY_RETRY_LATER the host is busy: try again
0x191 E_HLOS_CAP_REACHED no more host memory may be allocated
0x192 E_DPOOL_CAP_REACHED no more pool memory may be allocated
0x193 E_NO_MORE_FREE_SECTIONS the heap cannot grow: no section is free
0x194 AEE_ESTUBSKELVERMISMATCH the host's stub is newer than the NPU's library
0x200 AEE_ERPC the error is FastRPC's own
0x201 AEE_EFILE a file failed
"""

# The same number on both sides.
_PLAIN = """
0 AEE_SUCCESS no error
39 AEE_ENOSUCH no such name, port or socket
46 AEE_EINTERRUPTED the call was interrupted: it may be tried again
104 AEE_ECONNRESET the other side closed the connection
516 AEE_EWOULDBLOCK it would have had to wait
"""

# What is worth a look first where a code is seen in practice.
_ADVICE = {
    "AEE_ENOMEMORY": "fewer or smaller buffers, or another session; look who else uses the NPU",
    "AEE_EVERSIONNOTSUPPORT": "the device's firmware is older than the program; take a matching package or update it",
    "AEE_EUNABLETOLOAD": "not on ADSP_LIBRARY_PATH, or built for another Hexagon arch: hexnpu doctor --target ...",
    "AEE_EBADPARM": "often a domain or option that this firmware does not know, or a buffer that is not shared memory",
    "AEE_EUNSUPPORTED": "the firmware lacks the function (unsigned modules, dspqueue ...); update it, or do without",
    "AEE_EINVHANDLE": "a handle that was closed, or of a session that died",
    "AEE_ECPUEXCEPTION": "the NPU's log (adb logcat) says where; a debug build of the kernels says more",
    "AEE_ENOSUCHMAP": "map the buffer (fastrpc_mmap) before the NPU is given its address",
    "AEE_EFOPEN": "look whether /dev/fastrpc-cdsp exists and this user may open it, and whether the library is there",
    "AEE_ENORPCMEMORY": "shared memory is used up: free buffers, end old processes",
    "AEE_ECONNREFUSED": "the DSP is down or restarting (reboot), or this user may not open /dev/fastrpc-cdsp",
    "AEE_EUNSIGNEDMOD": "use an unsigned process (remote_session_control) or install a test signature",
    "AEE_ENOSESSION": "end other users of the NPU, or open fewer sessions",
    "AEE_ESTUBSKELVERMISMATCH": "program and library are of different builds: push both again",
    "AEE_ENOSUCH": "the library or the method is not there: hexnpu doctor --target ... names the library loaded",
    "AEE_EINTERRUPTED": "the DSP's process ended under the call, or a signal came: look for a crash before it",
    "AEE_ECONNRESET": "the NPU's process died (a crash, a restart of the subsystem): look at the message before it",
}


@dataclass(frozen=True)
class Meaning:
    """One reading of a number. `side`: NPU, host, or kernel."""

    name: str
    words: str
    side: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.side}): {self.words}" + (f". {self.advice}" if self.advice else "")


def explain(text: str) -> list[Meaning]:
    """What a code means: hexadecimal or decimal, with or without the offset, signed or not. Empty: unknown.

    Raises UsageError where the text is no number of 32 bits.
    """
    try:
        number = int(text.strip(), 0)
    except ValueError:
        raise UsageError(f"{text!r} is no error code; give a number such as 0x80000414, 0x2e or -2147482604") from None
    if not -(1 << 31) <= number < 1 << 32:
        raise UsageError(f"{text} does not fit 32 bits; error codes look like 0x80000414, 0x2e or -2147482604")
    unsigned = number & 0xFFFFFFFF
    signed = unsigned - (1 << 32) if unsigned >> 31 else unsigned
    if -1024 < signed < 0:
        kernel = Meaning(f"errno {-signed}", os.strerror(-signed), "the Linux kernel")
        unknown = [Meaning("AEE_EUNKNOWN", "an unknown error", "host")] if signed == -1 else []
        return [*unknown, kernel]
    if OFFSET <= unsigned <= OFFSET + LAST:
        # Codes that have no offset have been seen with it all the same.
        code = unsigned - OFFSET
        return _of(_CODES, code, "NPU") or _of(_PLAIN_CODES, code, "NPU; has no offset by the header")
    if unsigned <= LAST:
        return [*_of(_PLAIN_CODES, unsigned, "NPU or host"), *_of(_CODES, unsigned, "host")]
    return []


def _of(table: dict[int, tuple[str, str]], code: int, side: str) -> list[Meaning]:
    if code not in table:
        return []
    name, words = table[code]
    return [Meaning(name, words, side, _ADVICE.get(name, ""))]


def _parse(text: str) -> dict[int, tuple[str, str]]:
    rows = (line.split(" ", 2) for line in text.strip().splitlines())
    return {int(code, 0): (name, words) for code, name, words in rows}


_CODES = _parse(_TABLE)
_PLAIN_CODES = _parse(_PLAIN)
