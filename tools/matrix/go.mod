module github.com/latchkey-go/latchkey/tools/matrix

go 1.26.0
