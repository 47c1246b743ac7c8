package reply

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Each has the password as people type it who do not know that it has to be escaped.
func TestURLErrorsHaveNothingOfThePassword(t *testing.T) {
	for _, password := range []string{"s3cret/a", "s3cret?a", "s3cret#a", "s3cret%zz", "s3cret a", "s3cret[a", "42/s3cret", "42?s3cret", "42#s3cret", "a@42/s3cret"} {
		err := CheckURL("redis://user:" + password + "@localhost:6379/0")
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "zz") || !strings.Contains(err.Error(), "%2F for /") {
			t.Errorf("a password %q: %v", password, err)
		}
	}
}

func TestURLsOfServersAreNoMistake(t *testing.T) {
	for _, text := range []string{
		"redis://localhost", "rediss://user:p%2Fw@host:6379/3", "redis://:p@ss@host:6379", "unix://user:pw@/tmp/redis.sock?db=1", "redis://[::1]:6379",
		"redis://host1:6379?addr=host2:6379", "redis://h:26379?master_name=main&addr=h2:26379&sentinel_password=p@w", "redis://h:1?client_name=a@b",
	} {
		if err := CheckURL(text); err != nil {
			t.Errorf("CheckURL(%q) = %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"redis://host:abc": `this is no URL: invalid port ":abc" after host`, "redis://host#1": "this is no URL: it has a #",
		"redis://u:p@host\n": "this is no URL: it begins or ends with a blank or a line end",
	} {
		if err := CheckURL(text); err == nil || err.Error() != want {
			t.Errorf("CheckURL(%q) = %v, want %s", text, err, want)
		}
	}
	if o, err := redis.ParseURL("redis://user:p%2Fw%3F%23%25%20@host"); err != nil || o.Password != "p/w?#% " { // as the message says
		t.Errorf("ParseURL: %v", err)
	}
}
