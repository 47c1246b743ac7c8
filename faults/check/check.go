package check

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
)

// Options are the bounds of a run. The zero value has the ones that stand with each field.
type Options struct {
	Grace     time.Duration // what a process that was continued may take to notice; 100ms
	Overshoot time.Duration // how long after its deadline a call may be back; 100ms
	WaitSlack time.Duration // how long after its Wait a call may be back; 600ms
	Idle      time.Duration // how long beyond its lease a lock may stand idle while somebody waits; 2s
	Live      time.Duration // within which a call gets in after the heal; only deadlines later than that count; 10s

	Floor float64 // sections a second, under which the run is void; 0 sets none
	Share float64 // of sections that waited for another owner, under which the run is void; a third; negative sets none
	// Kinds are the faults that must have struck inside a section; those that the log names are always asked for.
	Kinds []string

	Models time.Duration // time for the sequential models; 10s; negative leaves them out
	Most   int           // violations that are kept; 20; all are counted
}

func (o Options) filled() Options {
	o.Grace = cmp.Or(o.Grace, 100*time.Millisecond)
	o.Overshoot = cmp.Or(o.Overshoot, 100*time.Millisecond)
	o.WaitSlack = cmp.Or(o.WaitSlack, 600*time.Millisecond)
	o.Idle = cmp.Or(o.Idle, 2*time.Second)
	o.Live = cmp.Or(o.Live, 10*time.Second)
	o.Share = cmp.Or(o.Share, 1.0/3)
	o.Models = cmp.Or(o.Models, 10*time.Second)
	o.Most = cmp.Or(o.Most, 20)
	return o
}

// A Violation is a rule that was broken.
type Violation struct {
	Rule string // as in the package comment
	Text string // key, owners, times, and lines of the log
}

// A Result is what Check found.
type Result struct {
	Violations []Violation // the first of them
	Count      int         // of all violations
	Void       []string    // why the run proves nothing, if it does not

	Sections  int           // of locks, semaphores and permits
	Waited    int           // those of them that waited for another owner
	Passes    int           // of latches and rate limiters
	Stopped   int           // sections overrun because their process was stopped
	AfterLoss int           // sections overrun because their server lost its data
	Lost      int           // sections that ended with their context
	Writes    int           // that stores accepted
	Refused   int           // writes that stores refused
	Updates   int           // acknowledged elements of stores, Missing of them not there at the end
	Missing   int           //
	Latest    time.Duration // how late a call was for its deadline, at the most
	Delayed   time.Duration // for how long a process had no processor, at the most
	Took      time.Duration // from the first event to the last
	Rate      float64       // sections a second

	Faults    map[string]int // how often each kind of fault was made
	Strikes   map[string]int // how many sections it struck inside
	Histories map[string]int // how many windows of histories each model has checked
	Undecided int            // windows that a model could not decide in time, or had no time for
}

// OK reports whether the run proves that nothing was violated.
func (r *Result) OK() bool { return r.Count == 0 && len(r.Void) == 0 }

// String is the result in lines: violations first.
func (r *Result) String() string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "VIOLATION %s: %s\n", v.Rule, v.Text)
	}
	if more := r.Count - len(r.Violations); more > 0 {
		fmt.Fprintf(&b, "and %d violations more\n", more)
	}
	for _, v := range r.Void {
		fmt.Fprintf(&b, "VOID %s\n", v)
	}
	fmt.Fprintf(&b, "%d sections in %.1fs (%.0f/s), %d waited for another owner, %d lost; overrun: %d while stopped, %d after a loss of data\n",
		r.Sections, r.Took.Seconds(), r.Rate, r.Waited, r.Lost, r.Stopped, r.AfterLoss)
	fmt.Fprintf(&b, "%d passes, %d writes and %d refused, %d of %d updates missing, latest for a deadline %v, without a processor for %v\n",
		r.Passes, r.Writes, r.Refused, r.Missing, r.Updates, r.Latest, r.Delayed)
	fmt.Fprintf(&b, "models: %v, %d undecided\nfaults: %v\nstruck: %v\n", r.Histories, r.Undecided, r.Faults, r.Strikes)
	return b.String()
}

// Check judges events, which are in the order of their times, as history.Read returns them.
func Check(events []history.Event, o Options) *Result {
	r := &Result{Faults: map[string]int{}, Strikes: map[string]int{}, Histories: map[string]int{}}
	t := lay(events, o.filled(), r)
	for _, rule := range []func(){
		t.holders, t.tokens, t.stores, t.returns, t.deadlines, t.waits, t.reentries, t.idles, t.heals, t.leftovers,
		t.latches, t.limiters, t.models, t.count, t.void,
	} {
		rule()
	}
	return r
}

func (t *timeline) violation(rule, format string, args ...any) {
	t.result.Count++
	if len(t.result.Violations) < t.options.Most {
		t.result.Violations = append(t.result.Violations, Violation{rule, fmt.Sprintf(format, args...)})
	}
}
