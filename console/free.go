package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

const (
	freeTimeout = 5 * time.Second // for Redis to answer
	mostReason  = 500             // bytes of a reason, and of a name
)

// confirmBody is the content of the page before a freeing.
type confirmBody struct {
	Lock    lockBody
	Back    template.URL
	Hidden  map[string]string // fields of the form
	AskName bool
	Name    string
	Reason  string
	Wrong   string // why the last try was not enough
	Most    int
}

// Fields of the form.
const (
	fieldSeen   = "seen"
	fieldTicket = "ticket"
	fieldReason = "reason"
	fieldName   = "name"
)

// idsOf are the holders of a lock.
func idsOf(o *redisson.Object) []string {
	ids := make([]string, 0, len(o.Holders))
	for _, h := range o.Holders {
		ids = append(ids, h.ID)
	}
	slices.Sort(ids)
	return ids
}

// heldBy identifies the holders of a lock, by a text that changes with them.
func heldBy(o *redisson.Object) string {
	sum := sha256.Sum256([]byte(o.Type.String() + "\x00" + o.Mode + "\x00" + strings.Join(idsOf(o), "\x00")))
	return hex.EncodeToString(sum[:])
}

// purpose is the purpose of a ticket for freeing a lock.
func purpose(key, seen string) string { return "free\x00" + seen + "\x00" + key }

func (h *handler) confirmPage(w http.ResponseWriter, r *http.Request) {
	if !h.checkFree(w, r) {
		return
	}
	key, err := h.keyOf(r.URL.Query().Get)
	if err != nil {
		h.wrongLink(w, err)
		return
	}
	h.confirm(w, r, http.StatusOK, key, confirmBody{})
}

// confirm shows who holds the lock now, and asks whether to free it. b has the text that the visitor wrote
// before.
func (h *handler) confirm(w http.ResponseWriter, r *http.Request, status int, key string, b confirmBody) {
	ctx, cancel := context.WithTimeout(r.Context(), freeTimeout)
	defer cancel()
	state := h.readLock(ctx, key, nil)
	b.Back = h.lockLink("lock", key).URL()
	b.Lock = h.lockBody(key, state, true)
	b.AskName, b.Most = h.who == nil, mostReason
	if state.failed == nil && freeable(&state.object) {
		seen := heldBy(&state.object)
		b.Hidden = map[string]string{fieldSeen: seen, fieldTicket: h.forms.ticket(purpose(key, seen)), "ref": h.keys.close(key)}
	}
	h.render(w, status, "confirm", frame{Title: "Free " + h.keyView(key).Text, Body: b})
}

// checkFree answers those who may not free locks, and reports whether this one may.
func (h *handler) checkFree(w http.ResponseWriter, r *http.Request) bool {
	err := h.mayFree(r)
	if err == nil {
		return true
	}
	h.log.WarnContext(r.Context(), "console: freeing refused", "remote", r.RemoteAddr, "error", err)
	detail := "You may look at locks here, but not free them."
	if errors.Is(err, errReadOnly) {
		detail = "This console only shows. The option console.AllowFree lets people free locks."
	}
	h.problem(w, http.StatusForbidden, "You may not free locks", detail)
	return false
}

// free frees a lock, if the form is a confirmation that was shown, and the lock is still as it was then.
func (h *handler) free(w http.ResponseWriter, r *http.Request) {
	if !h.checkFree(w, r) {
		return
	}
	if err := r.ParseForm(); err != nil {
		h.problem(w, http.StatusBadRequest, "This form can't be read", "It is too long, or no form at all. Nothing was changed.")
		return
	}
	key, err := h.keyOf(r.PostForm.Get)
	if err != nil {
		h.wrongLink(w, err)
		return
	}
	b := confirmBody{Reason: trim(r.PostForm.Get(fieldReason)), Name: trim(r.PostForm.Get(fieldName))}
	switch {
	case b.Reason == "":
		b.Wrong = "Give a reason: others will want to know."
	case h.who == nil && b.Name == "":
		b.Wrong = "Give your name: others will want to ask you."
	}
	if b.Wrong != "" {
		h.confirm(w, r, http.StatusUnprocessableEntity, key, b)
		return
	}
	seen := r.PostForm.Get(fieldSeen)
	if err := h.forms.use(r.PostForm.Get(fieldTicket), purpose(key, seen)); err != nil {
		h.wrongTicket(w, r, key, err, b)
		return
	}
	h.freeNow(w, r, key, seen, b)
}

// trim bounds what people write, and makes one line of it.
func trim(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return strings.ToValidUTF8(s[:min(len(s), mostReason)], "")
}

// wrongTicket answers a form that is no confirmation, or not any more.
func (h *handler) wrongTicket(w http.ResponseWriter, r *http.Request, key string, err error, b confirmBody) {
	h.log.WarnContext(r.Context(), "console: freeing refused", "remote", r.RemoteAddr, "key", h.shown(key), "error", err)
	if errors.Is(err, errUsed) {
		h.problem(w, http.StatusConflict, "This form was sent before", "It was good for one time. Nothing more was changed.")
		return
	}
	b.Wrong = "This form is too old, or was made by another process. Look at the lock again, and confirm it once more."
	status := http.StatusConflict
	if errors.Is(err, errForged) {
		status = http.StatusForbidden
	}
	h.confirm(w, r, status, key, b)
}

// freeNow frees the lock if its holders are those who were seen, and reports it.
func (h *handler) freeNow(w http.ResponseWriter, r *http.Request, key, seen string, b confirmBody) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), freeTimeout)
	defer cancel() // whoever leaves now wants it all the same
	o, err := h.client.InspectKey(ctx, key)
	switch {
	case err != nil:
		h.problem(w, http.StatusServiceUnavailable, "Redis does not answer", "Nothing was changed. Try again later.")
		return
	case !freeable(&o):
		h.problem(w, http.StatusConflict, "Nobody holds this lock any more", "Nothing was changed.")
		return
	case heldBy(&o) != seen:
		h.anotherHolder(w, r, key, b)
		return
	}
	freed := Freed{Key: key, Object: o, Who: b.Name, Remote: r.RemoteAddr, Reason: b.Reason, Time: time.Now()}
	if h.who != nil {
		freed.Who = h.who(r)
	}
	ok, err := h.client.Free(ctx, redisson.Freed{Key: key, Holders: idsOf(&o), Who: freed.Who, Reason: freed.Reason})
	if ok && err != nil { // freed, but not noted in Redis
		h.log.WarnContext(ctx, "console: not noted in Redis", "error", err)
		err = nil
	}
	switch {
	case errors.Is(err, lock.ErrBusy): // within the last millisecond
		h.anotherHolder(w, r, key, b)
		return
	case err == nil && !ok:
		h.problem(w, http.StatusConflict, "Nobody holds this lock any more", "Nothing was changed.")
		return
	}
	freed.Err = err
	h.tell(context.WithoutCancel(r.Context()), freed)
	if err != nil {
		h.problem(w, http.StatusServiceUnavailable, "Redis did not answer", "The lock may have been freed, or not: look at it again.")
		return
	}
	w.Header().Set("Location", string(h.lockLink("lock", key).with("freed", h.keys.close(freed.Time.Format(time.RFC3339)+" "+key))))
	w.WriteHeader(http.StatusSeeOther)
}

// anotherHolder answers a form that was made for other holders than there are now.
func (h *handler) anotherHolder(w http.ResponseWriter, r *http.Request, key string, b confirmBody) {
	b.Wrong = "This lock has another holder now. Nothing was changed. Look again, and confirm it if you still want to."
	h.confirm(w, r, http.StatusConflict, key, b)
}

// tell logs a lock that was freed by hand, and calls OnFree.
func (h *handler) tell(ctx context.Context, f Freed) {
	names := make([]string, 0, len(f.Object.Holders))
	for _, one := range f.Object.Holders {
		v := who(one.ID, one.Client, one.Who)
		names = append(names, v.Name)
	}
	message, args := "console: lock freed by hand", []any{"key", h.shown(f.Key), "who", f.Who, "remote", f.Remote, "reason", f.Reason, "holders", names}
	if f.Err != nil {
		message, args = "console: lock perhaps freed by hand", append(args, "error", f.Err)
	}
	h.log.WarnContext(ctx, message, args...)
	if h.onFree != nil {
		h.onFree(ctx, f)
	}
}
