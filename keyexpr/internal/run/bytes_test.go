package run

import (
	"context"
	"testing"
)

type (
	octet  byte
	octets []octet
	quad   [4]octet
)

// Bytes are spelt in hex by their kind, whatever their type is called.
func TestBytesOfNamedTypes(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{[]byte{0, 255}, "00ff"},
		{[2]byte{1, 2}, "0102"},
		{&[2]byte{1, 2}, "0102"},
		{[]octet{0, 255}, "00ff"},
		{octets{7}, "07"},
		{quad{1, 2, 3, 4}, "01020304"},
		{&quad{1, 2, 3, 4}, "01020304"},
	} {
		st := NewState(context.Background(), nil, nil)
		if got, err := st.Value(nil, tt.v, Before(nil)); err != nil || string(got) != tt.want {
			t.Errorf("Value(%T) = %q, %v, want %s", tt.v, got, err, tt.want)
		}
		st.Release()
	}
}
