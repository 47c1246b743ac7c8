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

// NoneOf reports that s is ASCII and has no byte from low to high. It may say false for a short text
// that has none, since it is there to spare work, and there is little to spare.
func NoneOf(s string, low, high byte) bool {
	if len(s) < wordSize {
		return false
	}
	from, beyond := uint64(low)*ones, uint64(high+1)*ones
	var found uint64
	for i := 0; i < len(s)-wordSize; i += wordSize {
		w := word(s, i)
		found |= w | atLeast(w, from)&^atLeast(w, beyond)
	}
	// The last word overlaps the one before it, so that no bytes are left over.
	w := word(s, len(s)-wordSize)
	found |= w | atLeast(w, from)&^atLeast(w, beyond)
	return found&tops == 0
}
