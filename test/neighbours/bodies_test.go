package neighbours

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	echo4middleware "github.com/labstack/echo/v4/middleware"
	echo5middleware "github.com/labstack/echo/v5/middleware"
)

const bodyKey = `order:#{path.id}:#{body.id}`

// order is a JSON object of about that many bytes.
func order(n int) []byte {
	return fmt.Appendf(nil, `{"id":"acme","note":%q}`, strings.Repeat("x", n))
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// counts answers with what the handler gets of the body.
func counts(x *exchange) error {
	data, err := io.ReadAll(x.r.Body)
	if err != nil {
		return &failure{http.StatusTeapot, "the handler says: " + strings.TrimPrefix(err.Error(), "multipart: ")}
	}
	x.w.Header().Set("Content-Type", "text/plain")
	_, err = fmt.Fprintf(x.w, "%d bytes, length %d, %.20s", len(data), x.r.ContentLength, data)
	return err
}

// ignores answers without a look at the body.
func ignores(x *exchange) error {
	x.w.Header().Set("Content-Type", "text/plain")
	_, err := io.WriteString(x.w, "done")
	return err
}

// uploads answers with the file of a form.
func uploads(x *exchange) error {
	f, h, err := x.r.FormFile("file")
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", "text/plain")
	_, err = fmt.Fprintf(x.w, "%s of %d bytes for %s", h.Filename, len(data), x.r.FormValue("id"))
	return err
}

// form is a multipart form with a file, and its type.
func form(n int) (body []byte, contentType string) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	_ = m.WriteField("id", "acme")
	f, _ := m.CreateFormFile("file", "note.txt")
	_, _ = f.Write(make([]byte, n))
	_ = m.Close()
	return b.Bytes(), m.FormDataContentType()
}

// inFront has f look at each request before the mux with the guarded work does.
func inFront(f func(*http.Request)) func(e *env) http.Handler {
	return func(e *env) http.Handler {
		mux := e.mux()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(r); mux.ServeHTTP(w, r) })
	}
}

func reads(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

func restores(r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(data))
}

// logged is the log, until the test ends.
func logged(t *testing.T) *syncBuffer {
	logs, before := new(syncBuffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(logs, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return logs
}

var (
	gzipped = map[string]string{"Content-Encoding": "gzip"}
	urlForm = map[string]string{"Content-Type": "application/x-www-form-urlencoded"}

	multipartForm, multipartType = form(100_000)
	smallForm, smallType         = form(100)
)

func plain(e *env) http.Handler      { return e.mux() }
func unzips(e *env) http.Handler     { return decompress(e.mux()) }
func unzips4(e *env) http.Handler    { return e.newEcho4(echo4middleware.Decompress()) }
func unzips5(e *env) http.Handler    { return e.newEcho5(echo5middleware.Decompress()) }
func bounded(e *env) http.Handler    { return http.MaxBytesHandler(e.mux(), 100) }
func bounded4(e *env) http.Handler   { return e.newEcho4(echo4middleware.BodyLimit("100B")) }
func ginAlone(e *env) http.Handler   { return e.newGin((*gin.Context).AbortWithError) }
func echo5Alone(e *env) http.Handler { return e.newEcho5() }

// binds has gin read the body in front of the guard, and keep it.
func binds(e *env) http.Handler {
	return e.newGin((*gin.Context).AbortWithError, func(c *gin.Context) {
		var order struct{ ID string }
		if err := c.ShouldBindBodyWith(&order, binding.JSON); err != nil || order.ID != "acme" {
			c.AbortWithStatus(http.StatusTeapot)
		}
	})
}

// bodies are those that somebody in front of the guard changes, bounds or reads.
var bodies = []struct {
	name    string
	new     func(*env) http.Handler
	do      func(*exchange) error
	key     string // the usual one if empty
	body    []byte
	header  map[string]string
	chunked bool
	status  int // of the guard's problem; 0 for the answer that there is without a guard
	logged  int // lines of the guard's in the log
}{
	{name: "decompressed", new: unzips, do: counts, body: zipped(order(100)), header: gzipped},
	{name: "decompressed, for the key", new: unzips, do: counts, key: bodyKey, body: zipped(order(100)), header: gzipped},
	{name: "decompressed to 2 MiB", new: unzips, do: counts, body: zipped(order(2 << 20)), header: gzipped},
	{name: "decompressed to 2 MiB, ignored", new: unzips, do: ignores, body: zipped(order(2 << 20)), header: gzipped},
	{name: "decompressed to 2 MiB, for the key", new: unzips, do: counts, key: bodyKey, body: zipped(order(2 << 20)), header: gzipped, status: 413},
	{name: "cut short before it is decompressed", new: unzips, do: counts, body: zipped(order(100))[:30], header: gzipped},
	{name: "cut short before it is decompressed, ignored", new: unzips, do: ignores, body: zipped(order(100))[:30], header: gzipped},
	{name: "decompressed by echo v4", new: unzips4, do: counts, body: zipped(order(2 << 20)), header: gzipped},
	{name: "decompressed by echo v5", new: unzips5, do: counts, body: zipped(order(2 << 20)), header: gzipped},
	{name: "decompressed by echo v4, for the key", new: unzips4, do: counts, key: bodyKey, body: zipped(order(100)), header: gzipped},
	{name: "decompressed by echo v5, for the key", new: unzips5, do: counts, key: bodyKey, body: zipped(order(100)), header: gzipped},

	{name: "bounded", new: bounded, do: counts, body: order(1000)},
	{name: "bounded, ignored", new: bounded, do: ignores, body: order(1000)},
	{name: "bounded, chunked", new: bounded, do: counts, body: order(1000), chunked: true},
	{name: "bounded, for the key", new: bounded, do: counts, key: bodyKey, body: order(1000), status: 413},
	{name: "bounded by echo v4", new: bounded4, do: counts, body: order(1000), chunked: true},

	{name: "read by somebody", new: inFront(reads), do: counts, body: order(100)},
	{name: "read by somebody, for the key", new: inFront(reads), do: counts, key: bodyKey, body: order(100), status: 500, logged: 1},
	{name: "read by somebody, chunked, for the key", new: inFront(reads), do: counts, key: bodyKey, body: order(100), chunked: true, status: 400},
	{name: "read and restored by somebody, for the key", new: inFront(restores), do: counts, key: bodyKey, body: order(100)},
	{name: "bound by gin, for the key", new: binds, do: ignores, key: bodyKey, body: order(100)},
	{name: "bound by gin", new: binds, do: counts, body: order(100)},
	{name: "form that was parsed in front, for the key", new: inFront(func(r *http.Request) { _ = r.ParseForm() }), do: counts,
		key: `order:#{path.id}:#{form.id}`, body: []byte("id=acme"), header: urlForm},

	{name: "large", new: plain, do: counts, key: bodyKey, body: order(500_000)},
	{name: "chunked, for the key", new: plain, do: counts, key: bodyKey, body: order(100), chunked: true},
	{name: "upload", new: plain, do: uploads, body: multipartForm, header: map[string]string{"Content-Type": multipartType}},
	{name: "small upload", new: plain, do: uploads, body: smallForm, header: map[string]string{"Content-Type": smallType}},
	{name: "upload to gin", new: ginAlone, do: uploads, body: multipartForm, header: map[string]string{"Content-Type": multipartType}},
	{name: "upload to echo v5", new: echo5Alone, do: uploads, body: multipartForm, header: map[string]string{"Content-Type": multipartType}},
	{name: "announced, ignored", new: plain, do: ignores, body: order(500_000), header: map[string]string{"Expect": "100-continue"}},
}

// TestBodies plays them with and without a guard.
func TestBodies(t *testing.T) {
	for _, tt := range bodies {
		t.Run(tt.name, func(t *testing.T) {
			logs := logged(t)
			p := play{
				program: program{name: "body", new: tt.new}, protocol: http1, key: tt.key,
				work: work{name: tt.name, do: tt.do, body: tt.body, header: tt.header, chunked: tt.chunked},
			}
			without, _ := p.run(t)
			p.state = &state{name: "free", tenant: "acme"}
			if tt.status != 0 {
				p.state.status, p.state.problem = tt.status, map[int]string{500: "ErrFault"}[tt.status]
			}
			with, a := p.run(t)
			if tt.name == "bounded, ignored" { // what a guard reads ahead, http.MaxBytesReader counts, too
				with.header = slices.DeleteFunc(with.header, func(line string) bool { return line == "(the connection closes)" })
			}
			wrong := p.differences(without, with)
			if tt.status != 0 {
				wrong = p.judgeRefusal(with)
			}
			if tt.status == 0 && a.runs != 1 {
				wrong = append(wrong, fmt.Sprintf("the handler ran %d times", a.runs))
			}
			if got := logs.String(); strings.Count(got, "guard=order.settle") != tt.logged {
				wrong = append(wrong, "logged "+got)
			}
			if len(wrong) > 0 {
				t.Errorf("%s\n\twithout: %v\n\twith:    %v\n\tguard:   %+v", strings.Join(wrong, "; "), without, with, a)
			}
		})
	}
}

// TestRefusedUpload has a client that wants to be told to send its body: a refused one is not.
func TestRefusedUpload(t *testing.T) {
	p := play{program: programs[0], protocol: http1, state: &states[3], work: work{
		name: "reads", do: counts, body: order(100), header: map[string]string{"Expect": "100-continue"},
	}}
	if with, a := p.run(t); with.status != http.StatusConflict || a.runs != 0 {
		t.Errorf("%v", with)
	}
}
