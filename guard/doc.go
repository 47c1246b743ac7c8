// Package guard puts a distributed lock in front of a function by declaring it.
package guard
