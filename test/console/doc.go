// Package console opens the console in a real browser: Chromium without a window, on a real Redis. Its tests are skipped
// where there is no Chromium or no redis-server, and fail instead if LATCHKEY_REQUIRE names chromium or redis. They install
// nothing.
//
//	go -C test/console test -count=1 .
//	go -C test/console test -count=1 -run Pictures -pictures ../../docs/operations/img .
//
// LATCHKEY_CHROMIUM is the path of the browser; without it, PATH is searched.
package console
