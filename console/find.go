package console

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/latchkey-go/latchkey/guard"
)

// findBody is the content of the page that looks for a lock.
type findBody struct {
	What, As string
	Wrong    string
	Asked    string // the request, if it was one
	Takes    []takeView
	Others   []takeView
}

// takeView describes what a guard would do with a request.
type takeView struct {
	Name, Mode, Note string
	Keys             []takenView
}

type takenView struct {
	Key   keyView
	Link  template.URL
	State string
}

func (h *handler) findPage(w http.ResponseWriter, _ *http.Request) {
	h.renderFind(w, http.StatusOK, findBody{})
}

func (h *handler) renderFind(w http.ResponseWriter, status int, b findBody) {
	h.render(w, status, "find", frame{Title: "Why is it locked?", Page: "find", Body: b})
}

var (
	idPattern      = regexp.MustCompile(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(:\d+(:write)?)?$`)
	requestPattern = regexp.MustCompile(`^(?:[A-Z]+ +)(?:https?://|/)|^https?://`)
)

// find takes what was pasted to the page that answers for it. It comes as a POST, as bodies of requests belong in no log.
func (h *handler) find(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		h.renderFind(w, http.StatusRequestEntityTooLarge, findBody{Wrong: "This is too long."})
		return
	}
	b := findBody{What: r.PostForm.Get("what"), As: r.PostForm.Get("as")}
	text := strings.TrimRight(strings.ReplaceAll(b.What, "\r\n", "\n"), "\n")
	word := strings.TrimSpace(text)
	switch {
	case word == "":
		b.Wrong = "Paste something."
		h.renderFind(w, http.StatusUnprocessableEntity, b)
	case b.As == "id", b.As == "" && idPattern.MatchString(word):
		see(w, link("./").with("q", strings.TrimSuffix(word, ":write")))
	case b.As == "request", b.As == "" && requestPattern.MatchString(word):
		h.explain(w, r, b, text)
	default:
		see(w, h.lockLink("lock", pastedKey(text)))
	}
}

// pastedKey is a key as it was copied from this console, or from elsewhere: keys that can't be seen whole are in quotes here.
func pastedKey(text string) string {
	word := strings.TrimSpace(text)
	if len(word) > 1 && word[0] == '"' {
		if key, err := strconv.Unquote(word); err == nil && key != "" {
			return key
		}
	}
	return text
}

func see(w http.ResponseWriter, to linkTo) {
	w.Header().Set("Location", string(to))
	w.WriteHeader(http.StatusSeeOther)
}

// explain says which guards would take which keys for a request.
func (h *handler) explain(w http.ResponseWriter, r *http.Request, b findBody, text string) {
	if h.registry == nil {
		b.Wrong = "This console was made without a registry, so it knows no guards."
		h.renderFind(w, http.StatusOK, b)
		return
	}
	p, err := readRequest(text)
	if err != nil {
		b.Wrong = "This request can't be read: " + err.Error() + "."
		h.renderFind(w, http.StatusUnprocessableEntity, b)
		return
	}
	b.Asked = p.method + " " + p.url.Path
	for info := range h.registry.All() {
		v, takes := h.takes(r.Context(), p, info)
		if takes {
			b.Takes = append(b.Takes, v)
		} else {
			b.Others = append(b.Others, v)
		}
	}
	h.renderFind(w, http.StatusOK, b)
}

// takes says what one guard would do with a request, and whether it gets as far as a key.
func (h *handler) takes(ctx context.Context, p *pasted, info guard.Info) (takeView, bool) {
	v := takeView{Name: info.Spec.Name, Mode: info.Mode.String()}
	if methods := info.Spec.Methods; methods != "" && !strings.Contains(","+methods+",", ","+p.method+",") {
		v.Note = "is for " + strings.ReplaceAll(methods, ",", ", ") + " only"
		return v, false
	}
	e, err := h.registry.Explain(ctx, info.Spec.Name, p.facts(info.Roots))
	switch {
	case err != nil:
		v.Note = err.Error()
		return v, false
	case e.Err != nil:
		v.Note = notFitting(e.Err)
		return v, false
	case !e.Applies:
		v.Note = "Its condition is false: it would run without a lock."
	case e.Mode == guard.Off:
		v.Note = "It is switched off: it would run without a lock."
	}
	for _, k := range e.Keys {
		v.Keys = append(v.Keys, takenView{h.keyView(k.Key), h.lockLink("lock", k.Key).URL(), keyState(k)})
	}
	return v, true
}

// notFitting says why there is no key.
func notFitting(err error) string {
	if e, ok := errors.AsType[*guard.Error](err); ok {
		switch {
		case e.Fact != "" && strings.HasPrefix(e.Fact, "path."):
			return "it needs " + e.Fact + ": give it as a line such as " + e.Fact + ": 7"
		case e.Fact != "":
			return "it needs " + e.Fact
		case e.Cause != nil:
			return e.Cause.Error()
		}
	}
	return err.Error()
}

func keyState(k guard.KeyState) string {
	switch {
	case k.Err != nil:
		return "Redis did not answer"
	case !k.Known:
		return ""
	case !k.Busy:
		return "is free now"
	case k.Rate:
		return "is free, but its rate is used up"
	case k.Level != "":
		return "has no place, as the level " + k.Level + " is full"
	case k.Remaining > 0:
		return "is held, for another " + spanText(k.Remaining) + " unless it is renewed"
	}
	return "is held"
}
