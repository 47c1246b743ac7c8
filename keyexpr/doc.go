// Package keyexpr turns requests into lock keys: templates such as order:#{req.OrderID}, parsed and type-checked when
// the program starts.
package keyexpr
