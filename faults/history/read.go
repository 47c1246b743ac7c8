package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Read returns the events of all logs in dir, in the order of their times. Events of one time keep the order of their file.
func Read(dir string) ([]Event, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, name := range names {
		if all, err = readFile(all, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return all, nil
}

func readFile(all []Event, name string) ([]Event, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	proc := ""
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // a line without its end was torn by a kill
		}
		if err != nil {
			return nil, err
		}
		e, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			if e.Op != Start || e.Proc == "" {
				return nil, errors.New("line 1 is not the start of a process")
			}
			proc = e.Proc
		}
		e.Proc, e.Line = proc, n
		all = append(all, e)
	}
}

func parse(line []byte) (e Event, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err = d.Decode(&e)
	return e, err
}
