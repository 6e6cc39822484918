from hexnpu.cli import main

main()
