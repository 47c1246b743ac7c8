// Package shoppb is a service for the tests of interceptors, whose methods have guards in shop.proto.
package shoppb
