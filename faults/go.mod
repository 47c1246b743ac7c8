module github.com/latchkey-go/latchkey/faults

go 1.26.0

replace github.com/latchkey-go/latchkey => ..

require golang.org/x/sys v0.48.0

require github.com/anishathalye/porcupine v1.3.1
