package main

import "time"

// job is an order to a worker, one JSON object a line. The Java program reads the same fields.
type job struct {
	Do      string `json:"do"`             // a name in jobs, in worker.go
	Addr    string `json:"addr"`           // of Redis, or of what stands before it
	What    string `json:"what,omitempty"` // a name in takings
	Key     string `json:"key"`            // new for each job, so that nothing of an earlier one is in the way
	OneKey  bool   `json:"one_key,omitempty"`
	Callers int    `json:"callers,omitempty"`
	Clients int    `json:"clients,omitempty"` // that the callers share; 0: one, which stays for later jobs
	Millis  int    `json:"millis,omitempty"`  // how long
	Skip    int    `json:"skip,omitempty"`    // milliseconds in the beginning of which nothing counts
	Hold    int    `json:"hold,omitempty"`    // how many milliseconds a caller has the one key
	Limit   int    `json:"limit,omitempty"`   // how many may have the one key at once, of latchkey; 0: one
	Away    int    `json:"away,omitempty"`    // how many milliseconds a caller stays away after its release
	Since   int    `json:"since,omitempty"`   // milliseconds: who got the lock only before is starved
	Count   int    `json:"count,omitempty"`   // of locks to hold
	Board   string `json:"board,omitempty"`   // a file that the processes of one job share; without it the job has one process
	Side    int    `json:"side,omitempty"`    // which of them this is, from 0
}

// result is a worker's answer. Fields that a job does not measure are zero.
type result struct {
	Error string `json:"error,omitempty"` // why there is no result

	Done    int64     `json:"done"`            // pairs, acquisitions, calls or turns
	Nanos   int64     `json:"nanos"`           // how long that took
	Failed  int64     `json:"failed"`          // calls that returned an error
	Failure string    `json:"failure"`         // one of these errors
	Allocs  float64   `json:"allocs"`          // of memory, for each of Done
	Times   []int64   `json:"times"`           // ns: percentiles of how long each took; see percentiles
	Changes int64     `json:"changes"`         // acquisitions by another caller than the one before
	Gaps    []int64   `json:"gaps"`            // ns: percentiles of the time from a release to the acquisition of another caller
	Longest int64     `json:"longest"`         // ns that a caller waited at most
	Starved int64     `json:"starved"`         // callers that never got the lock
	Overlap int64     `json:"overlap"`         // times that two held it
	Bytes   float64   `json:"bytes"`           // of memory, for each lock that is held
	Routine float64   `json:"goroutines"`      // or threads, for each lock that is held
	Named   []measure `json:"named,omitempty"` // what jobs of one kind measure besides
}

// measure is a figure of one job that others do not have.
type measure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// perSecond returns the rate of what was done.
func (r result) perSecond() float64 { return float64(r.Done) / time.Duration(r.Nanos).Seconds() }

// merge adds what another process, or another slice of time, has measured. Percentiles are the means of both, by how much each has done.
func (r result) merge(o result, sameTime bool) result {
	if r.Done == 0 && r.Nanos == 0 {
		return o
	}
	if done := r.Done + o.Done; done > 0 {
		r.Allocs = (r.Allocs*float64(r.Done) + o.Allocs*float64(o.Done)) / float64(done)
	}
	r.Times, r.Gaps = mean(r.Times, r.Done, o.Times, o.Done), mean(r.Gaps, r.Done, o.Gaps, o.Done)
	r.Done += o.Done
	if sameTime {
		r.Nanos = max(r.Nanos, o.Nanos)
	} else {
		r.Nanos += o.Nanos
	}
	r.Failed += o.Failed
	if r.Failure == "" {
		r.Failure = o.Failure
	}
	r.Changes += o.Changes
	r.Longest = max(r.Longest, o.Longest)
	r.Starved += o.Starved
	r.Overlap += o.Overlap
	return r
}

// mean returns the mean of two lists of percentiles, of as many measurements each as its weight says. Either may be missing.
func mean(a []int64, weightOfA int64, b []int64, weightOfB int64) []int64 {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	both := make([]int64, len(a))
	for i := range both {
		both[i] = (a[i]*weightOfA + b[i]*weightOfB) / max(weightOfA+weightOfB, 1)
	}
	return both
}
