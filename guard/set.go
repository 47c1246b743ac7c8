package guard

import "fmt"

// Set sets one attribute of s from its text, as a tag has it: s.Set("wait", "2s"). A flag has the text "true". It is for
// spellings that come in parts, such as the fields of a message or of a form.
func (s *Spec) Set(attribute, text string) error {
	a, err := findAttribute(attribute)
	if err != nil {
		return err
	}
	if err := a.set(s, text); err != nil {
		return fmt.Errorf("%s: %w", attribute, err)
	}
	s.imply()
	return nil
}
