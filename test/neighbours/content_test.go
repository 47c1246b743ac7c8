package neighbours

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestContent serves a small and a large file by http.ServeContent, with all that clients ask about files.
func TestContent(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after, before := "Sat, 03 Jan 2026 00:00:00 GMT", "Thu, 01 Jan 2026 00:00:00 GMT"
	var works []work
	for _, size := range []int{1000, 100_000} {
		path := filepath.Join(t.TempDir(), "order.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		serve := func(x *exchange) error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			x.w.Header().Set("Etag", `"7"`)
			http.ServeContent(x.w, x.r, path, modified, f)
			x.lose()
			return nil
		}
		for name, header := range map[string]map[string]string{
			"all of it":           nil,
			"range":               {"Range": "bytes=10-99"},
			"rest":                {"Range": "bytes=500-"},
			"end":                 {"Range": "bytes=-300"},
			"range of the same":   {"Range": "bytes=10-99", "If-Range": `"7"`},
			"range of another":    {"Range": "bytes=10-99", "If-Range": `"6"`},
			"modified":            {"If-Modified-Since": before},
			"not modified":        {"If-Modified-Since": after},
			"the same":            {"If-None-Match": `"7"`},
			"another":             {"If-None-Match": `"6"`},
			"range past the end":  {"Range": "bytes=1000000-"},
			"precondition failed": {"If-Match": `"6"`},
		} {
			for _, method := range []string{"GET", "HEAD"} {
				if size > 1000 && name != "all of it" && name != "rest" {
					continue
				}
				w := work{name: method + " " + name, method: method, header: maps.Clone(header), do: serve, midway: size > 1000}
				if strings.Contains(name, "past") || strings.Contains(name, "failed") {
					w.outcome = "error"
				}
				works = append(works, w)
			}
		}
	}
	compare(t, works, states[:2], http1)
}
