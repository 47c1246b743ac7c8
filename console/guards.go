package console

import (
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

// guardsRest is the time between two looks at the guards of the program, which cost Redis nothing.
const guardsRest = 2 * time.Second

// guardsBody is what the page of the guards shows.
type guardsBody struct {
	Registry bool
	Guards   []guardView
	Status   statusView
}

type guardView struct {
	Name, Template, Spec, Shape, Place, Mode string
	Kind                                     string
	Waiting, Held                            int64
	Calls                                    int64
	Outcomes                                 []outcomeView
	Wait, Hold                               timesView
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
	f := frame{Title: "Guards", Page: "guards", Body: h.guardsBody(), Stream: link("events").with("of", "guards").URL(), Again: "guards"}
	f.reload(r)
	h.render(w, http.StatusOK, "guards", f)
}

func (h *handler) guardsBody() guardsBody {
	b := guardsBody{Registry: h.registry != nil, Status: statusView{Text: "As of " + time.Now().Format(time.TimeOnly) + ", in this process, since it started."}}
	if h.registry == nil {
		return b
	}
	for info := range h.registry.All() {
		b.Guards = append(b.Guards, newGuardView(info))
	}
	return b
}

func newGuardView(i guard.Info) guardView {
	spec := i.Spec
	spec.Name = "" // stands above it
	v := guardView{
		Name: i.Spec.Name, Template: i.Spec.Key, Shape: i.Shape, Place: i.Place, Mode: i.Mode.String(), Kind: i.Spec.Kind.String(),
		Waiting: i.Waiting, Held: i.Held, Wait: newTimes(&i.Waits), Hold: newTimes(&i.Holds), Spec: spec.String(),
	}
	for _, name := range guard.Outcomes() {
		if n := i.Outcomes[name]; n > 0 {
			v.Outcomes = append(v.Outcomes, outcomeView{name, n, bad[name]})
			v.Calls += n
		}
	}
	return v
}
