// Package keyexpr turns requests into the keys of locks.
//
// A template is literal text with holes, order:#{req.OrderID}:#{lower(header.Tenant)}. It is parsed and type-checked once,
// against the [Roots] that an adapter can offer, so that a misspelt field, a missing brace or a float in a key stops the
// program when it starts, with a place and the name that was probably meant:
//
//	tmpl, err := keyexpr.Parse("order:#{req.OrderID}", keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()})
//	…
//	keys, err := tmpl.Expand(ctx, facts)
//
// Keys are made so that they can be trusted. A template that reads nothing of the request is an error, unless [OneKey] says
// that it is meant. A value that is nil or empty is an error that matches [ErrValue]: it never makes a key that unrelated
// requests share. What could be taken for the literal text around a value is escaped, so that different values never make
// the same key, and [Template.Match] reads them back. README.md in this folder teaches the language.
//
// Most programs don't import this package: they write templates in the options and tags of package guard. Package spel
// beside it is for programs that share locks with a service in Java.
package keyexpr

// How a text becomes a key. Each stage has a file:
//
//	scan.go       cuts a template into literals and the sources of holes; lookalike.go explains what was meant to be a hole
//	parse.go      makes a tree of each source, and refuses what a key must not use
//	resolve.go    replaces other spellings of fields by their Go names, and explains names that there are not
//	check.go      finds out the types, with types.go, and refuses what makes no key
//	parts.go      takes apart what puts values together (+, join, lists), so that each value is escaped by itself
//	compile.go    makes closures of all other nodes, with access.go for paths, operators.go and numbers.go, and calls.go for the
//	              functions in functions.go, textfuncs.go, lists.go and hash.go
//	internal/run  asks for the facts and runs what was compiled, within bounds of time and memory
//
// The trees and their types are those of expr-lang/expr, whose language this is. Its machine is not used: it neither counts
// what an expression costs nor knows that two values in one text must stay apart.
