package main

import (
	"context"
	"errors"
)

func javaCommand(_ context.Context, _ func(string, ...any)) ([]string, error) {
	return nil, errors.New("no JDK")
}
