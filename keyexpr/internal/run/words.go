package run

// Eight bytes at once. Nearly all values of keys are ids that are left as they are, and to find that
// out byte by byte took a fifth of the time of a key. A word holds eight bytes of a text. All of
// them are compared by one calculation, whose answer is the top bit of each byte.
//
// The answers are right for bytes of ASCII. These leave their top bit free, and it is set before
// something is taken away, so that no byte borrows from its neighbour. Bytes from 0x80 on have it
// anyway, and whoever asks has to look for those as well.

const (
	wordSize = 8
	ones     = 0x0101010101010101 // times a byte, it is eight of that byte
	tops     = 0x8080808080808080
)

// word returns the eight bytes of s from i on. The compiler makes one load of it.
func word(s string, i int) uint64 {
	s = s[i : i+wordSize]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// atLeast answers for each byte whether it is at least as large as that which eights has eight times.
func atLeast(w, eights uint64) uint64 { return (w | tops) - eights }

// differs answers for each byte whether it is another one than that which eights has eight times.
func differs(w, eights uint64) uint64 { return ((w ^ eights) | tops) - ones }
