//go:build !unix

package main

import "os"

var passedOn, suspending []os.Signal
