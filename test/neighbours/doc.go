// Package neighbours puts guards into programs that are made of what is published for net/http, gin, echo and gRPC, and compares
// each with the same program without a guard: chi, huma, gin with gzip, cors and timeout, echo with gzip, gorilla, decompressors,
// timeouts, proxies, websockets, otelhttp, gRPC-Gateway, Connect.
//
// A call that the guard lets through is answered as without a guard; any other is answered by the table of package middleware,
// in a form that the client understands in spite of all that stands between. The table of exceptions is in play_test.go.
//
// Fiber is not here: it is built on fasthttp and not on net/http, so no guard of this project stands in front of its handlers.
package neighbours
