// Package interop holds no code but its tests, which run package spel against Java itself: a program in the folder java
// evaluates expressions with Spring Expression, lock4j, klock and the Java compiler, and a key that Go makes must be the one
// that it makes.
//
// The keys are those of testdata/corpus.txt, which has what becomes of each, and random ones. "make interop" runs them all; by hand
// it is
//
//	LATCHKEY_INTEROP=1 go test -v ./keyexpr/spel/interop
//
// Without LATCHKEY_INTEROP=1 nothing is built, because the first run fetches Spring and what it needs. Keys are held to the
// answers that Java gave when they were last recorded, by -args -record. So it is where there is no JDK 17 or Maven;
// LATCHKEY_REQUIRE=spring makes what is missing a failure. Maven builds and keeps all that it fetches in java/target.
package interop
