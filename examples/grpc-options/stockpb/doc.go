// Package stockpb is the interface of the warehouse, generated from stock.proto by "make generate".
package stockpb
