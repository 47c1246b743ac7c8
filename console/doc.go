// Package console is a page for operators, to mount in a program's own mux: which locks are held in Redis, by whom, for how
// long, and who waits; what the guards of the program do; and, where that is allowed, freeing a lock and switching a guard by hand.
//
//	page, err := console.New(client, registry, console.ShowKeys(console.Whole))
//	…
//	mux.Handle("/ops/locks/", page) // or "/", or behind a proxy that strips a prefix
//
// # Who may see it
//
// As it is, the console answers requests from its own machine only, shows keys in part, and changes nothing. Each of these is
// an option: [Authorize] opens it to others, [ShowKeys] shows more of the keys, [AllowFree] lets people free locks, and [AllowSwitch]
// lets them switch guards.
//
//	console.Authorize(func(r *http.Request) error { return session.MustBe(r, "operator") }),
//	console.AllowFree(func(r *http.Request) error { return session.MustBe(r, "on-call") }),
//	console.Who(session.User),
//	console.OnFree(func(ctx context.Context, f console.Freed) { audit.Write(ctx, f.Who, f.Reason, f.Key) }),
//
// A request comes from its own machine if its address and the host that it asks for are loopback, so that no site can be made
// to point there, and if no proxy has added its headers. A proxy that adds none, on the same machine, is not noticed: it needs
// Authorize.
//
// # Freeing a lock
//
// The link leads to a page that shows who holds the lock, and asks for a reason. Its form is a POST behind
// [http.CrossOriginProtection], and carries a ticket that is good once, for ten minutes, for this lock and these
// holders: one that is forged, sent again or late frees nothing, and neither does one for a lock that has another
// holder by now. The console logs each lock that was freed with who and why, and calls [OnFree]. The holder is
// notified, as [redisson.Client.ForceUnlock] says.
//
// # Switching a guard
//
// A guard whose declaration says switchable can be switched off, to shadow mode, or on, as by [guard.Registry.Switch]: in this process, for the
// calls that are yet to begin. Its form is confirmed as that for freeing is, with a reason and a time of at most a day. When that is over, the guard has
// the mode that it had before, unless it was switched otherwise meanwhile; nothing outlives the process. The page of the guards says which
// of them is switched, by whom, why and until when. Each switching is logged, its end as well, and is given to [OnSwitch].
//
// # What it costs
//
// The console asks Redis only while somebody looks, and all who look at the same thing share the answers: at most five
// questions a second for an open page, beside those with SCAN. The list is found by a search, as
// [redisson.Client.Objects] does it: three scripts with SCAN for each 1,000 keys in Redis, and few others, as the
// scripts for a hundred locks travel together and count as one. Between two searches there are two seconds at least and
// nine times as long as one took; meanwhile, if that is long, the locks that are known are read again every two
// seconds. The more questions a reading takes, the longer it rests: four of them are worth a second. There are many of
// them with very many locks, or in a cluster, whose masters are all asked. If there are more than 20,000 locks, the
// list keeps those with waiters and the oldest. A filter asks Redis for the others, by the beginning of their keys,
// where [ShowKeys] shows these whole. An open page of a lock asks twice a second. The page of the guards asks nothing.
//
// # In the browser
//
// Pages are made by the server and work without JavaScript; with it they are live, by server-sent events, until they
// are paused. They load nothing from elsewhere, and their links are relative: the last element of the path alone names
// the page. A server that shuts down ends their streams, as far as the handler can see the server in the request's
// context.
package console
