package console

import (
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
)

// guardsRest is the time between two looks at the guards of the program, which cost Redis nothing.
const guardsRest = 2 * time.Second

// guardsBody is the content of the page of the guards.
type guardsBody struct {
	Registry bool
	Guards   []guardView
	Status   statusView
}

// guardView is a row of the page.
type guardView struct {
	guard.Info // without the name in its Spec
	Name       string
	Locks      template.URL // those in the list that it may have taken; empty if that is not known
	Calls      int64
	Failing    bool // there are outcomes that are bad
	Outcomes   []outcomeView
	Wait, Hold timesView
	Switched   *Switched    // by hand, or nil
	Switch     template.URL // where to switch it, if this visitor may
}

type outcomeView struct {
	Name  string
	Count int64
	Bad   bool // a failure, and not the guard doing its job
}

// timesView are times of which a half, and of which one in a hundred, are longer.
type timesView struct {
	Count    int64
	P50, P99 string
}

func newTimes(t *guard.Times) timesView {
	v := timesView{Count: t.Count()}
	if v.Count > 0 {
		v.P50, v.P99 = briefly(t.Quantile(.5)), briefly(t.Quantile(.99))
	}
	return v
}

// briefly is a time with two digits that matter. Below a millisecond nothing is known.
func briefly(d time.Duration) string {
	switch {
	case d <= 2*time.Millisecond:
		return "≤ " + d.Round(time.Millisecond).String()
	case d < 100*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return spanText(d)
}

// bad are the outcomes in which a guard could not do its job.
var bad = map[string]bool{
	guard.OutcomeOutage: true, guard.OutcomeOverload: true, guard.OutcomeUnsupported: true, guard.OutcomeFault: true, guard.OutcomeLost: true,
	guard.OutcomeMaxHold: true, guard.OutcomePanic: true,
}

func (h *handler) guardsPage(w http.ResponseWriter, r *http.Request) {
	f := frame{Title: "Guards", Page: "guards", Body: h.guardsBody(h.allowSwitch(r) == nil), Stream: link("events").with("of", "guards").URL(), Again: "guards"}
	f.reload(r)
	h.render(w, http.StatusOK, "guards", f)
}

func (h *handler) guardsBody(maySwitch bool) guardsBody {
	b := guardsBody{Registry: h.registry != nil, Status: statusView{Text: "As of " + time.Now().Format(time.TimeOnly) + ", in this process, since it started."}}
	if h.registry == nil {
		return b
	}
	var fine []guardView
	for info := range h.registry.All() {
		if v := h.guardView(info, maySwitch); v.Failing {
			b.Guards = append(b.Guards, v)
		} else {
			fine = append(fine, v)
		}
	}
	b.Guards = append(b.Guards, fine...)
	return b
}

func (h *handler) guardView(i guard.Info, maySwitch bool) guardView {
	v := guardView{Info: i, Name: i.Spec.Name, Wait: newTimes(&i.Waits), Hold: newTimes(&i.Holds)}
	v.Spec.Name = "" // stands beside it
	if s, ok := h.switches.by.Load(v.Name); ok && s.(*Switched).Mode == i.Mode {
		v.Switched = s.(*Switched)
	}
	if start, _, _ := strings.Cut(i.Shape, "<"); start != "" && h.show != nil && h.show(i.Shape) == i.Shape {
		v.Locks = link("./").with("q", start).URL()
	}
	if maySwitch && i.Spec.Switchable {
		v.Switch = link("switch").with("guard", v.Name).URL()
	}
	for _, name := range adapter.Outcomes() {
		if n := i.Outcomes[name]; n > 0 {
			v.Outcomes = append(v.Outcomes, outcomeView{name, n, bad[name]})
			v.Calls, v.Failing = v.Calls+n, v.Failing || bad[name]
		}
	}
	return v
}
