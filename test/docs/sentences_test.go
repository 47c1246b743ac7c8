package docs

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	blocks    = regexp.MustCompile("(?ms)^ *```.*?^ *```$|^<!--.*?-->$|^(?:    \\S[^\n]*\n)+")
	links     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	paragraph = regexp.MustCompile(`\n\s*\n|\n *(?:[-*]|\d+\.) |\n#+ [^\n]*|\n?\||\n>`)
	end       = regexp.MustCompile(`[.!?:;]["”)*]*\s+`)
	quiet     = strings.NewReplacer("*", "", "_", "", "#", "")
)

// sentences are those of a page with eight words or more, without its code. A cell of a table counts as one, and so does what a colon or
// a semicolon ends.
func sentences(page string) (found []string) {
	page = links.ReplaceAllString(blocks.ReplaceAllString(page, "\n\n"), "$1")
	for _, text := range paragraph.Split("\n"+page, -1) {
		for _, sentence := range end.Split(strings.Join(strings.Fields(quiet.Replace(text)), " ")+" ", -1) {
			sentence = strings.ToLower(strings.Trim(sentence, " .,!?:;"))
			if len(strings.Fields(sentence)) >= 8 {
				found = append(found, sentence)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// mostWords is how long all pages are together. One that grows wants another one that shrinks.
const mostWords = 40_000

// Each thing is said once, in its right place: no sentence stands on two pages.
func TestNoSentenceStandsOnTwoPages(t *testing.T) {
	const root = "../.."
	list, err := exec.Command("git", "-C", root, "ls-files", "-z", "*.md").Output()
	if err != nil {
		t.Skip(err) // a copy without its history
	}
	where, words := map[string]string{}, 0
	for file := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(path.Join(root, file))
		if os.IsNotExist(err) || path.Base(file) == "CHANGELOG.md" || strings.HasSuffix(file, ".zh-CN.md") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		words += len(strings.Fields(string(text)))
		for _, sentence := range sentences(string(text)) {
			if first, ok := where[sentence]; ok {
				t.Errorf("%s and %s say: %s", first, file, sentence)
			} else {
				where[sentence] = file
			}
		}
	}
	if words > mostWords {
		t.Errorf("the pages have %d words, want %d at most", words, mostWords)
	}
}

func TestSentences(t *testing.T) {
	const page = "# A heading of many words that is no sentence at all\n\nOne two three four five\n" +
		"[six](x.md) `seven` **eight**. Too short. And a second one: one two three four five six seven eight.\n\n" +
		"```go\none two three four five six seven eight nine\n```\n\n| a cell with eight words is a sentence | b |\n"
	want := []string{"a cell with eight words is a sentence", "one two three four five six `seven` eight", "one two three four five six seven eight"}
	if got := sentences(page); !slices.Equal(got, want) {
		t.Errorf("sentences %q, want %q", got, want)
	}
}
