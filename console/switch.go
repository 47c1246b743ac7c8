package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

// A guard is switched by hand for an hour, or for another time up to a day.
const usualSwitch, mostSwitch = "1h", 24 * time.Hour

// switches are the guards that are switched by hand, until that ends.
type switches struct {
	mu sync.Mutex // while one is switched
	by sync.Map   // *Switched by name
}

// switchBody is the content of the page on which a guard is switched.
type switchBody struct {
	Switched // as far as it was given
	View     guardView
	Hidden   map[string]string // fields of the form
	AskName  bool
	Chosen   string // the mode, as it was given
	For      string
	Wrong    string // why the last try was not enough
	Most     int
}

// switchPage shows the form that switches a guard, and takes it.
func (h *handler) switchPage(w http.ResponseWriter, r *http.Request) {
	if err := h.allowSwitch(r); err != nil {
		h.log.WarnContext(r.Context(), "console: switching refused", "remote", r.RemoteAddr, "error", err)
		h.problem(w, http.StatusForbidden, "You may not switch guards", "The option console.AllowSwitch lets people switch guards.")
		return
	}
	name := r.FormValue("guard")
	if !h.guard(name).Spec.Switchable {
		h.problem(w, http.StatusNotFound, "There is no such guard to switch", "A guard can be switched if its declaration says switchable. Nothing was changed.")
		return
	}
	b, status := switchBody{For: usualSwitch}, http.StatusOK
	if r.Method == http.MethodPost {
		if b, status = h.takeSwitch(r, name); b.Wrong == "" {
			w.Header().Set("Location", "guards#g-"+url.PathEscape(name))
			w.WriteHeader(status)
			return
		}
	}
	b.View, b.AskName, b.Most = h.guardView(h.guard(name), false), h.who == nil, mostReason
	seen := b.View.Mode.String()
	b.Hidden = map[string]string{"guard": name, fieldSeen: seen, fieldTicket: h.forms.ticket("switch\x00" + seen + "\x00" + name)}
	h.render(w, status, "switch", frame{Title: "Switch " + name, Page: "guards", Body: b})
}

// guard is the guard with that name, or empty.
func (h *handler) guard(name string) guard.Info {
	for info := range h.registry.All() {
		if info.Spec.Name == name {
			return info
		}
	}
	return guard.Info{}
}

// takeSwitch switches a guard if the form is good and a confirmation that was shown. Otherwise the body says why not.
func (h *handler) takeSwitch(r *http.Request, name string) (b switchBody, status int) {
	given := func(field string) string { return trim(r.PostForm.Get(field)) }
	b.Chosen, b.For = given("mode"), cmp.Or(given("for"), usualSwitch)
	b.Switched = Switched{Guard: name, Who: given(fieldName), Remote: r.RemoteAddr, Reason: given(fieldReason), Time: time.Now()}
	if h.who != nil {
		b.Who = h.who(r)
	}
	d, err := time.ParseDuration(b.For)
	switch {
	case b.Mode.UnmarshalText([]byte(b.Chosen)) != nil:
		b.Wrong = "Choose how to switch it."
	case err != nil || d < time.Second || d > mostSwitch:
		b.Wrong = "Give a time from 1s to 24h, such as 90m."
	case b.Reason == "" || h.who == nil && b.Who == "":
		b.Wrong = "Give your name and a reason: others will want to know."
	}
	if b.Wrong != "" {
		return b, http.StatusUnprocessableEntity
	}
	seen := given(fieldSeen)
	if err = h.forms.use(r.PostForm.Get(fieldTicket), "switch\x00"+seen+"\x00"+name); err == nil {
		err = h.switchGuard(&b.Switched, seen, d)
	}
	if err != nil {
		h.log.WarnContext(r.Context(), "console: switching refused", "remote", r.RemoteAddr, "guard", name, "error", err)
		b.Wrong = "Nothing was changed: " + err.Error() + ". Look again, and confirm it if you still want to."
		return b, http.StatusConflict
	}
	h.tellSwitched(context.WithoutCancel(r.Context()), "console: guard switched by hand", b.Switched)
	return b, http.StatusSeeOther
}

var errSwitched = errors.New("somebody has switched this guard meanwhile")

// switchGuard switches a guard that is in the mode seen, for d. Then it has the mode again that it had before it was switched by hand.
func (h *handler) switchGuard(s *Switched, seen string, d time.Duration) error {
	h.switches.mu.Lock()
	defer h.switches.mu.Unlock()
	view := h.guardView(h.guard(s.Guard), false)
	if s.Before = view.Mode; s.Before.String() != seen {
		return errSwitched
	}
	if view.Switched != nil {
		s.Before = view.Switched.Before
	}
	if err := h.registry.Switch(s.Guard, s.Mode); err != nil {
		return err
	}
	h.switches.by.Delete(s.Guard)
	if s.Mode != s.Before {
		s.Until = s.Time.Add(d)
		now := *s
		h.switches.by.Store(s.Guard, &now)
		time.AfterFunc(d, func() { h.switchBack(&now) })
	}
	return nil
}

// switchBack ends what s is, unless the guard was switched otherwise meanwhile.
func (h *handler) switchBack(s *Switched) {
	h.switches.mu.Lock()
	ended := h.switches.by.CompareAndDelete(s.Guard, s) && h.guard(s.Guard).Mode == s.Mode && h.registry.Switch(s.Guard, s.Before) == nil
	h.switches.mu.Unlock()
	if ended {
		back := *s
		back.Mode, back.Before, back.Time, back.Until, back.Ended = s.Before, s.Mode, time.Now(), time.Time{}, true
		h.tellSwitched(context.Background(), "console: guard switched back, as the time is over", back)
	}
}

// tellSwitched gives the account of a guard that was switched by hand, or back at the end of that.
func (h *handler) tellSwitched(ctx context.Context, message string, s Switched) {
	h.log.WarnContext(ctx, message, "guard", s.Guard, "mode", s.Mode, "before", s.Before, "who", s.Who, "remote", s.Remote, "reason", s.Reason, "until", s.Until)
	if h.onSwitch != nil {
		h.onSwitch(ctx, s)
	}
}
