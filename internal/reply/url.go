package reply

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// CheckURL says why text is no URL of a server, or one that was meant to have a password and has it elsewhere. It quotes nothing that
// may be a part of the password: where a character in that is not escaped, that is what a parser complains about.
func CheckURL(text string) error {
	if strings.TrimSpace(text) != text {
		return errors.New("this is no URL: it begins or ends with a blank or a line end")
	}
	u, err := url.Parse(text)
	if err == nil && !spilt(u) {
		return nil
	}
	if strings.Contains(text, "@") {
		return errors.New("this is no URL: in a user's name or password, write %25 for %, %2F for /, %3F for ?, %23 for #, %20 for a blank")
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL
	}
	if err == nil {
		err = errors.New("it has a #")
	}
	return fmt.Errorf("this is no URL: %w", err)
}

// spilt reports whether a URL has the end of a password where none belongs.
func spilt(u *url.URL) bool {
	name, _, at := strings.Cut(u.RawQuery, "@")
	return u.Fragment != "" || strings.Contains(u.Path, "@") || at && u.User == nil && !strings.Contains(name, "=")
}
