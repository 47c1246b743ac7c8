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
// Keys are made so that they can be trusted. A value that is nil or empty is an error that matches [ErrValue]: it never
// makes a key that unrelated requests share. What could be taken for the literal text around a hole is escaped, so that
// different values never make the same key. README.md in this folder teaches the language.
//
// Most programs don't import this package: they write templates in the options and tags of package guard. [SpEL] and the
// presets beside it are for programs that share locks with a service in Java.
package keyexpr
