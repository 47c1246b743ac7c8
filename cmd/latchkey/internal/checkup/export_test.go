package checkup

import "strings"

// Unasked are the commands of the lines for which there is no question.
func Unasked() (missing []string) {
	for _, f := range features() {
		for _, word := range f.words {
			if name, ok := strings.CutPrefix(word, "+"); ok && questions[name] == nil {
				missing = append(missing, name)
			}
		}
	}
	return missing
}
