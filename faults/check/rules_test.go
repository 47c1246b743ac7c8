package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/faults/check"
)

func TestHolders(t *testing.T) {
	testVerdicts(t, []verdict{
		{"one after the other", "", hold("a", 0, 10) + hold("b", 10, 20)},
		{"at once", "holders model", `
			0 a ask 1 lock k
			1 a enter 1
			2 b ask 1 lock k
			5 b enter 1
			6 a exit 1
			7 a released 1
			8 b exit 1
			9 b released 1`},
		{"at once, of two keys", "", `
			0 a ask 1 lock k
			1 a enter 1
			5 b ask 1 lock l
			5 b enter 1
			6 a exit 1
			7 a released 1
			8 b exit 1
			9 b released 1`},
	})
}

func TestOwners(t *testing.T) {
	testVerdicts(t, []verdict{
		{"at once, of one owner", "", `
			0 a ask 1 lock k owner=x
			1 a enter 1
			2 a ask 2 lock k owner=x
			3 a enter 2
			4 a exit 2
			5 a released 2
			6 a exit 1
			7 a released 1`},
		{"at once, of one owner that can't re-enter", "holders model", `
			0 a ask 1 mutex k owner=x
			1 a enter 1
			2 a ask 2 mutex k owner=x
			3 a enter 2
			4 a exit 2
			5 a released 2
			6 a exit 1
			7 a released 1`},
	})
}

func TestSections(t *testing.T) {
	testVerdicts(t, []verdict{
		{"one key of two", "holders model", `
			0 a ask 1 multi k+l
			1 a enter 1
			2 b ask 1 lock l
			3 b enter 1
			4 b exit 1
			5 b released 1
			6 a exit 1
			7 a released 1`},
		{"between exit and release", "", `
			0 a ask 1 lock k
			1 a enter 1
			2 b ask 1 lock k
			3 a exit 1
			4 b enter 1
			5 b exit 1
			6 a released 1
			6 b released 1`},
		{"killed, and then somebody else", "", `
			0 a ask 1 lock k
			1 a enter 1
			2 faults kill procs=a
			3 a look 1
			500 b ask 1 lock k
			1001 b enter 1
			1002 b exit 1
			1003 b released 1`},
	})
}

// stopped is a holder whose process is stopped from 100 ms to stop, and ends at end; another holds the lock from 1500 ms on.
func stopped(cont, end int, how string) string {
	lines := []string{"0 a ask 1 lock k", "1 a enter 1", "90 a look 1", "100 faults stop procs=a", "1400 b ask 1 lock k", "1500 b enter 1",
		fmt.Sprintf("%d faults cont procs=a", cont), fmt.Sprintf("%d a %s 1", end, how), fmt.Sprintf("%d a notheld 1", end+1),
		"2700 b exit 1", "2701 b released 1"}
	slices.SortStableFunc(lines, func(a, b string) int { return number(a) - number(b) })
	return strings.Join(lines, "\n")
}

func number(line string) (n int) {
	_, _ = fmt.Sscan(line, &n)
	return n
}

func TestSectionOverrunByAStoppedProcess(t *testing.T) {
	tests := []struct {
		name  string
		text  string
		rules string
		apart int
	}{
		{"it looks soon after", stopped(2000, 2050, "lost"), "", 1},
		{"it is done before it looks", stopped(2000, 2050, "exit"), "", 1},
		{"its context has not noticed when it looks", strings.Replace(stopped(2000, 2050, "exit"), "2050 a exit", "2049 a look 1\n2050 a exit", 1), "", 1},
		{"it had just entered, and has not noticed when it looks", strings.NewReplacer("\n1 a enter 1", "", "\n90 a look 1", "", "procs=a\n1400", "procs=a\n101 a enter 1\n1400",
			"2050 a exit", "2049 a look 1\n2050 a exit").Replace(stopped(2000, 2050, "exit")), "", 1},
		{"it goes on", stopped(2000, 2150, "lost"), "holders", 0},
		{"it was continued before the other entered", stopped(1300, 1600, "lost"), "holders", 0},
		{"it was continued just before the other entered", stopped(1450, 1510, "lost"), "", 1},
		{"another process was stopped", strings.ReplaceAll(stopped(2000, 2050, "lost"), "procs=a", "procs=c"), "holders", 0},
		{"it still thinks that it holds the lock, and releases it", strings.Replace(stopped(2000, 2050, "exit"), "notheld", "released", 1), "model", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := judge(t, tt.text); rules(r) != tt.rules || r.Stopped != tt.apart {
				t.Errorf("rules broken: %q, counted apart %d; want %q, %d\n%s", rules(r), r.Stopped, tt.rules, tt.apart, r)
			}
		})
	}
}

// lost is a holder whose server loses its data at 100 ms, and that ends at end; another holds the lock from 150 ms on.
func lost(end int, ask string) string {
	return fmt.Sprintf(`
		0 a ask 1 lock k
		1 a enter 1
		100 faults datalost since=90 %s
		120 b ask 1 lock k
		150 b enter 1
		%d a lost 1
		%d a notheld 1
		2700 b exit 1
		2701 b released 1`, ask, end, end)
}

func TestSectionOverrunAfterALossOfData(t *testing.T) {
	tests := []struct {
		name  string
		text  string
		rules string
		apart int
	}{
		{"until its lease ended", lost(1050, "servers=s"), "", 1},
		{"until its lease ended, in good faith", strings.NewReplacer("1 a enter 1", "1 a enter 1\n50 b ask 1 lock k", "120 b ask 1 lock k", "",
			"150 b enter 1", "150 b enter 1\n500 a look 1").Replace(lost(1050, "servers=s")), "", 1},
		{"at another server", lost(1050, "servers=r"), "holders", 0},
		{"the lock was taken after it", "0 faults datalost since=-10 servers=s\n" + strings.Replace(lost(1050, "servers=r"), "0 a ask", "0.1 a ask", 1), "holders", 0},
		{"the other came when the lease had ended", strings.Replace(lost(1500, "servers=s"), "150 b enter 1", "1300 b enter 1", 1), "holders", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := judge(t, tt.text); rules(r) != tt.rules || r.AfterLoss != tt.apart {
				t.Errorf("rules broken: %q, counted apart %d; want %q, %d\n%s", rules(r), r.AfterLoss, tt.rules, tt.apart, r)
			}
		})
	}
}

// two are holders of kinds at once.
func two(first, second string) string {
	return fmt.Sprintf(`
		0 a ask 1 %s
		1 a enter 1 token=5
		2 b ask 1 %s
		3 b enter 1 token=6
		4 a exit 1
		5 a released 1
		6 b exit 1
		7 b released 1`, first, second)
}

func TestReadersAndPermits(t *testing.T) {
	testVerdicts(t, []verdict{
		{"two readers", "", two("read k", "read k")},
		{"a reader and a writer", "holders model", two("read k", "write k")},
		{"a writer and a reader", "holders model", two("write k", "read k")},
		{"a writer that reads", "", two("write k owner=x", "read k owner=x")},
		{"as many permits as there are", "", two("permit k limit=2", "permit k limit=2")},
		{"as many permits as the larger limit", "", two("permit k limit=2 permits=2", "permit k limit=3")},
		{"a permit too many for the larger limit", "holders model", two("permit k limit=2 permits=2", "permit k limit=3 permits=2")},
		{"a permit too many", "holders model", two("permit k limit=2 permits=2", "permit k limit=2")},
		{"a permit too many of a semaphore", "holders model", two("semaphore k limit=3 permits=2", "semaphore k limit=3 permits=2")},
		{"as many permits as there are after one was stopped", "", strings.NewReplacer("lock k", "permit k limit=1").Replace(stopped(2000, 2050, "lost"))},
	})
}

func TestTokens(t *testing.T) {
	tokens := func(first, second int, between string) string {
		return fmt.Sprintf(`
			0 a ask 1 fenced k
			1 a enter 1 token=%d
			2 a exit 1
			3 a released 1
			%s
			5 b ask 1 fenced k
			6 b enter 1 token=%d
			7 b exit 1
			8 b released 1`, first, between, second)
	}
	testVerdicts(t, []verdict{
		{"rises", "", tokens(1, 2, "")},
		{"falls", "model token", tokens(2, 1, "")},
		{"repeats", "model token", tokens(2, 2, "")},
		{"falls after a loss", "", tokens(2, 1, "4 faults datalost since=3.5 servers=s")},
		{"falls after a loss elsewhere", "model token", tokens(2, 1, "4 faults datalost since=3.5 servers=r")},
		{"of an owner that re-enters", "", `
			0 a ask 1 fenced k owner=x
			1 a enter 1 token=3
			2 a ask 2 fenced k owner=x
			3 a enter 2 token=3
			4 a exit 2
			5 a released 2
			6 a exit 1
			7 a released 1`},
	})
}

func TestStores(t *testing.T) {
	store := func(writes string) string {
		return `
			0 a ask 1 fenced k
			1 a enter 1 token=5
			2 faults stop procs=a
			1500 b ask 1 fenced k
			1501 b enter 1 token=6
			` + writes + `
			1540 a exit 1
			1541 a notheld 1
			1550 b exit 1
			1551 b released 1
			1600 x final keys=k elements=e,f`
	}
	testVerdicts(t, []verdict{
		{"refuses the stale", "", store("1510 b write 1 since=1509 token=6 what=e\n1520 faults cont procs=a\n1530 a refused 1 since=1521 token=5 what=g")},
		{"accepts the stale", "write", store("1510 b write 1 since=1509 token=6 what=e\n1520 faults cont procs=a\n1530 a write 1 since=1521 token=5 what=f")},
		{"may have accepted the stale first", "", store("1505 faults cont procs=a\n1510 b write 1 since=1506 token=6 what=e\n1530 a write 1 since=1509 token=5 what=f")},
		{"lost an element", "update", store("1510 b write 1 since=1509 token=6 what=g\n1520 faults cont procs=a")},
		{"has an element twice", "once", store("1510 b write 1 since=1509 token=6 what=f\n1520 faults cont procs=a") + "\n1700 x final keys=j elements=e,f,e"},
		{"lost an element without a fence", "", store("1510 b write 1 since=1509 what=g\n1520 faults cont procs=a")},
	})
	if r := judge(t, store("1510 b write 1 since=1509 what=g\n1520 faults cont procs=a")); r.Missing != 1 || r.Updates != 1 {
		t.Errorf("%d of %d updates are missing, want 1 of 1", r.Missing, r.Updates)
	}
}

func TestDeadlinesAndWaits(t *testing.T) {
	ask := func(how, back string) string { return "0 a ask 1 lock k " + how + "\n" + back }
	testVerdicts(t, []verdict{
		{"back in time", "", ask("deadline=500", "590 a busy 1")},
		{"late for the deadline", "deadline", ask("deadline=500", "610 a failed 1 error=timeout")},
		{"got in late", "deadline", ask("deadline=500", "610 a enter 1\n611 a exit 1\n612 a released 1")},
		{"late because it was stopped", "", ask("deadline=500", "400 faults stop procs=a\n900 faults cont procs=a\n1050 a busy 1")},
		{"late although it was stopped", "deadline", ask("deadline=500", "400 faults stop procs=a\n900 faults cont procs=a\n1150 a busy 1")},
		{"late because it was stopped before", "deadline", ask("deadline=500", "100 faults stop procs=a\n400 faults cont procs=a\n650 a busy 1")},
		{"late because it had no processor", "", ask("deadline=500", "650 a delayed since=450\n740 a busy 1")},
		{"late although it had no processor for a while", "deadline", ask("deadline=500", "650 a delayed since=450\n760 a busy 1")},
		{"late although it was stopped, and its ticker with it", "deadline",
			ask("deadline=500", "400 faults stop procs=a\n900 faults cont procs=a\n901 a delayed since=400\n1150 a busy 1")},
		{"late while another process had no processor", "deadline", ask("deadline=500", "650 b delayed since=450\n740 a busy 1")},
		{"release in time", "", ask("", "1 a enter 1\n2 a exit 1\n600 a unreleased 1 deadline=500")},
		{"release late", "deadline", ask("", "1 a enter 1\n2 a exit 1\n700 a unreleased 1 deadline=500")},
		{"after its wait", "", ask("wait=100ms", "650 a busy 1")},
		{"too long after its wait", "wait", ask("wait=100ms", "750 a busy 1")},
		{"too long for one that does not wait", "wait", ask("wait=0s", "650 a busy 1")},
	})
	if r := judge(t, ask("deadline=500", "590 a busy 1")); r.Latest != 90*time.Millisecond {
		t.Errorf("the latest was %v late, want 90ms", r.Latest)
	}
}

func TestReturns(t *testing.T) {
	testVerdicts(t, []verdict{
		{"a call that never came back", "return", "0 a ask 1 lock k\n1 b ask 1 lock l\n2 b busy 1"},
		{"a section that never ended", "return", "0 a ask 1 lock k\n1 a enter 1"},
		{"a release that never came back", "return", "0 a ask 1 lock k\n1 a enter 1\n2 a exit 1"},
		{"a process that was killed", "", "0 a ask 1 lock k\n1 a enter 1\n2 a ask 2 lock l\n3 faults kill procs=a"},
		{"a wait for a latch has no release", "", "0 a ask 1 latch k\n1 a enter 1\n2 a exit 1"},
		{"an event without a call", "log", "0 a enter 1"},
		{"an event twice", "log", hold("a", 0, 1) + "2 a enter 1"},
		{"a lock without a lease", "log", "0 a ask 1 lock k lease=0s\n1 a busy 1"},
		{"a heal of no fault", "log", "0 faults healed 3"},
	})
}

func TestReentries(t *testing.T) {
	inner := func(first, second string, between string) string {
		return fmt.Sprintf(`
			0 a ask 1 %s owner=x
			1 a enter 1
			2 a ask 2 %s owner=x wait=10ms
			%s
			12 a busy 2
			20 a look 1
			30 a exit 1
			31 a released 1
			40 faults healed 1`, first, second, between)
	}
	fault := "0 faults fault 1 what=cut servers=s\n"
	testVerdicts(t, []verdict{
		{"told that its own lock is busy", "reentry", "0 faults fault 1 what=cut servers=r" + inner("lock k", "lock k", "")},
		{"while a fault lasts", "", fault + inner("lock k", "lock k", "")},
		{"reads may not write", "", "0 faults fault 1 what=cut servers=r" + inner("read k", "write k", "")},
		{"writes may read", "reentry", "0 faults fault 1 what=cut servers=r" + inner("write k", "read k", "")},
		{"what is not re-entrant", "", "0 faults fault 1 what=cut servers=r" + inner("mutex k", "mutex k", "")},
		{"of several locks, others have one", "", "0 faults fault 1 what=cut servers=r" + inner("lock k", "multi k+l", "")},
		{"while it was stopped", "", "0 faults fault 1 what=cut servers=r" + inner("lock k", "lock k", "5 faults stop procs=a\n6 faults cont procs=a")},
	})
}

func TestIdle(t *testing.T) {
	waiter := func(from, to int, between string) string {
		return hold("a", 0, 10) + fmt.Sprintf("%d b ask 1 lock k\n%s\n%d b enter 1\n%d b exit 1\n%d b released 1", from, between, to, to, to)
	}
	testVerdicts(t, []verdict{
		{"within its lease and some", "", waiter(11, 3000, "")},
		{"longer", "idle", waiter(11, 3100, "")},
		{"nobody waited", "", waiter(3000, 3100, "")},
		{"a fault between", "", waiter(11, 3900, "1500 faults fault 1 what=cut servers=s\n1600 faults healed 1")},
		{"a fault elsewhere", "idle", waiter(11, 3900, "1500 faults fault 1 what=cut servers=r\n1600 faults healed 1")},
		{"stopped between", "", waiter(11, 3900, "1500 faults stop procs=b\n1600 faults cont procs=b")},
		{"after a kill", "idle", "0 a ask 1 lock k\n1 a enter 1\n2 b ask 1 lock k\n100 faults kill procs=a\n3200 b enter 1\n3201 b exit 1\n3202 b released 1"},
		{"somebody failed between", "", waiter(11, 3900, "1400 c ask 1 lock k\n1500 c failed 1 error=cut")},
		{"a semaphore whose holder was killed", "", "0 a ask 1 semaphore k limit=1\n1 a enter 1\n2 b ask 1 semaphore k limit=1\n100 faults kill procs=a\n9200 b busy 1"},
	})
}

func TestHeals(t *testing.T) {
	after := func(calls string) string { return "0 a ask 1 lock k\n100 faults heal\n" + calls }
	testVerdicts(t, []verdict{
		{"got in", "", after("150 a enter 1\n151 a exit 1\n152 a released 1\n160 b ask 1 lock k\n161 b enter 1\n162 b exit 1\n163 b released 1")},
		{"one that waited failed", "heal", after("150 a failed 1 error=cut\n160 b ask 1 lock k wait=0s\n161 b busy 1")},
		{"one that asked later failed", "heal", after("150 a enter 1\n151 a exit 1\n152 a released 1\n160 b ask 1 lock k\n161 b failed 1 error=cut")},
		{"with too little time", "", after("150 a enter 1\n151 a exit 1\n152 a released 1\n160 b ask 1 lock k deadline=260\n261 b busy 1")},
		{"when something was done again", "", after("110 b ask 1 lock l\n120 faults fault 1 what=cut servers=s\n150 a failed 1 error=cut\n160 b enter 1\n161 b exit 1\n162 b released 1\n163 faults healed 1")},
	})
}

func TestLeftovers(t *testing.T) {
	testVerdicts(t, []verdict{
		{"nothing", "", "0 a leftover what=goroutines n=0"},
		{"goroutines", "leftover", "0 a leftover what=goroutines n=2"},
	})
}

func TestLatches(t *testing.T) {
	latch := func(entered int, second string) string {
		return fmt.Sprintf(`
			1 x set kind=latch keys=k limit=2
			2 a ask 1 latch k
			10 x count kind=latch keys=k since=5
			%s
			%d a enter 1
			30 a exit 1`, second, entered)
	}
	testVerdicts(t, []verdict{
		{"open", "", latch(25, "20 x count kind=latch keys=k since=15")},
		{"closed", "latch model", latch(25, "")},
		{"about to open", "", strings.Replace(latch(16, ""), "30 a exit 1", "20 x count kind=latch keys=k since=15\n30 a exit 1", 1)},
		{"closed as yet", "latch model", strings.Replace(latch(14, ""), "30 a exit 1", "20 x count kind=latch keys=k since=15\n30 a exit 1", 1)},
		{"counted in doubt", "", latch(25, "20 x count kind=latch keys=k since=15 error=cut")},
		{"lost", "", latch(25, "20 faults datalost since=15 servers=s")},
	})
}

func TestLimiters(t *testing.T) {
	pass := func(call, ask, enter int) string {
		return fmt.Sprintf("%d a ask %d limiter k limit=2 rate=100ms\n%d a enter %d\n%d a exit %d\n", ask, call, enter, call, enter, call)
	}
	testVerdicts(t, []verdict{
		{"at the rate", "", pass(1, 0, 1) + pass(2, 2, 3) + pass(3, 100, 101) + pass(4, 102, 103)},
		{"over the rate", "rate", pass(1, 0, 1) + pass(2, 2, 3) + pass(3, 80, 81)},
		{"over the rate after a loss", "", pass(1, 0, 1) + pass(2, 2, 3) + "50 faults datalost since=49 servers=s\n" + pass(3, 80, 81)},
		{"one asked early and passed late", "", pass(1, 0, 1) + pass(2, 2, 3) + pass(3, 50, 101)},
		{"one may have been earlier", "", pass(1, 0, 98) + pass(2, 99, 99) + pass(3, 120, 121)},
	})
}

func TestVoid(t *testing.T) {
	busy := `
		0 faults fault 1 what=cut servers=s
		1 a ask 1 lock k
		2 a enter 1
		3 b ask 1 lock k
		4 a exit 1
		5 a released 1
		6 faults healed 1
		8 b enter 1
		9 b exit 1
		10 b released 1
		11 faults heal
		12 c ask 1 lock k
		13 c enter 1
		14 c exit 1
		15 c released 1
	`
	tests := []struct {
		name    string
		text    string
		options check.Options
		void    string // part of the reason
	}{
		{"a busy run", busy, check.Options{Floor: 100}, ""},
		{"no section", "0 a ask 1 lock k\n1 a busy 1", check.Options{}, "no section"},
		{"slow", busy, check.Options{Floor: 1000}, "sections a second"},
		{"nobody waited", hold("a", 0, 10) + hold("b", 10, 20), check.Options{}, "0 of 2 sections waited"},
		{"too few waited", busy, check.Options{Share: 0.5}, "1 of 3 sections waited"},
		{"a fault that struck nobody", strings.ReplaceAll(busy, "servers=s", "servers=r"), check.Options{}, `"cut" never struck`},
		{"a fault that struck nobody's process", strings.ReplaceAll(busy, "servers=s", "servers=s procs=b"), check.Options{}, `"cut" never struck`},
		{"a fault that was not made", busy, check.Options{Kinds: []string{"cut", "flush"}}, `"flush" was never made`},
		{"nobody asked after the heal", strings.Replace(busy, "11 faults heal", "20 faults heal", 1), check.Options{}, "after the heal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines := slices.Collect(strings.Lines(tt.text))
			slices.SortStableFunc(lines, func(a, b string) int { return number(a) - number(b) })
			r := check.Check(play(t, strings.Join(lines, "")), tt.options)
			got := strings.Join(r.Void, "; ")
			if r.Count > 0 || (tt.void == "") != (got == "") || !strings.Contains(got, tt.void) {
				t.Errorf("void because %q, want %q\n%s", got, tt.void, r)
			}
		})
	}
}

func TestWaitingIsForWhomOneExcludes(t *testing.T) {
	for _, tt := range []struct {
		first, second string
		waited        int
	}{
		{"lock k", "lock k", 1},
		{"lock k owner=x", "lock k owner=x", 0},
		{"read k", "read k", 0},
		{"read k", "write k", 1},
		{"permit k limit=2", "permit k limit=2", 0},
		{"permit k limit=1", "permit k limit=1", 1},
	} {
		if r := judge(t, two(tt.first, tt.second)); r.Waited != tt.waited {
			t.Errorf("after %s, %d of %s have waited, want %d", tt.first, r.Waited, tt.second, tt.waited)
		}
	}
}

func TestStrikesAreCounted(t *testing.T) {
	r := judge(t, hold("a", 0, 10)+`
		11 faults fault 1 what=cut servers=s
		12 a ask 2 lock k
		13 a enter 2
		14 faults healed 1
		15 faults fault 2 what=kill procs=a
		16 faults kill procs=a
		17 faults healed 2
		`+hold("b", 2000, 2010))
	if r.Strikes["cut"] != 1 || r.Strikes["kill"] != 1 || r.Faults["cut"] != 1 || r.Sections != 3 {
		t.Errorf("%+v", r)
	}
}

func TestViolationNamesWhoAndWhere(t *testing.T) {
	r := judge(t, two("fenced k owner=x", "fenced k owner=y"))
	if len(r.Violations) == 0 {
		t.Fatal("two holders are no violation")
	}
	text := r.Violations[0].Text
	for _, want := range []string{`"k"`, "a call 1 (a.log:1)", "b call 1 (b.log:1)", "owner x", "owner y", "asked 0.002000s", "exit 0.004000s", "token 6"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
}
