package reply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The classes that answers can have.
var (
	elsewhere  = Class{Type: "not_ready", Repeat: true, Elsewhere: true}
	noReplicas = Class{Type: "no_replicas", Repeat: true, Elsewhere: true}
	notReady   = Class{Type: "not_ready", Repeat: true}
	apart      = Class{Type: "not_ready", Repeat: true, Apart: true}
	noMemory   = Class{Type: "no_memory", Passes: true}
	noDisk     = Class{Type: "no_disk", Passes: true}
	noLogin    = Class{Type: "refused", Refused: true}
	noRight    = Class{Type: "refused", Refused: true, NoRight: true}
	wrongType  = Class{Type: "refused", Refused: true, Incurable: true, WrongType: true}
	noCommand  = Class{Type: "refused", Refused: true, Incurable: true, NoCommand: true}
	mistake    = Class{Type: "refused", Refused: true, Incurable: true}
	moved      = Class{Type: "not_ready", Repeat: true, Slot: true}
	twoSlots   = Class{Type: "refused", Refused: true, Incurable: true, Slot: true}
	noScript   = Class{Type: "_OTHER", NoScript: true}
	other      = Class{Type: "_OTHER"}
)

// meant are the classes that the answers have to have, by the beginning of the situation in which a server gives them.
var meant = []struct {
	situation string
	class     Class
}{
	{"no memory", noMemory}, {"no snapshot", noDisk}, {"too few replicas", noReplicas},
	{"read-only replica", elsewhere}, {"replica without a master", elsewhere}, {"loading", elsewhere},
	{"busy with a script", notReady}, {"too many clients", notReady}, {"script killed", other},
	{"slot elsewhere, undeclared", notReady}, {"slot elsewhere", moved}, {"slot nowhere", notReady}, {"cluster down", notReady}, {"two slots", twoSlots},
	{"key has moved, undeclared", notReady}, {"key has ", apart},
	{"some keys have moved, undeclared", notReady}, {"some keys have not come, undeclared", notReady}, {"some keys have ", apart},
	{"no password", noLogin}, {"wrong password", noLogin}, {"no such user", noLogin}, {"no right ", noRight},
	{"no such script", noScript}, {"no such command", noCommand}, {"no such subcommand", noCommand}, {"another type", wrongType},
	{"no integer", mistake}, {"no number", mistake}, {"transaction with a mistake", other},
}

// expect compares the class of an answer with the one that is meant, which a row of the table has to say.
func expect(t *testing.T, situation, text string) {
	t.Helper()
	for _, m := range meant {
		if !strings.HasPrefix(situation, m.situation) {
			continue
		}
		if _, known := find(text); !known || Classify(words(text)) != m.class {
			t.Errorf("%s: %q is %+v (known: %v), want %+v", situation, text, Classify(words(text)), known, m.class)
		}
		return
	}
	t.Errorf("%s: nobody says what it means: %q", situation, text)
}

// What servers of each version have said, as "make answers" records it.
func TestRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob("testdata/answers/*.txt")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			for line := range strings.Lines(string(text)) {
				situation, answer, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				expect(t, situation, answer)
			}
			for _, m := range meant {
				if !strings.Contains("\n"+string(text), "\n"+m.situation) {
					t.Errorf("no answer is recorded for %q", m.situation)
				}
			}
		})
	}
}
