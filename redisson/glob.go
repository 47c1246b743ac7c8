package redisson

// matches reports whether text matches a pattern as Redis has them:
//
//	pattern = { "*" | "?" | "[" [ "^" ] { "\" byte | byte "-" byte | byte } "]" | "\" byte | byte }
//
// A class or an escape that the pattern's end cuts off means what there is of it.
func matches(pattern, text string) bool {
	star, again := -1, 0 // where the last star was, and the text behind what it stands for
	p, t := 0, 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, again = p, t
			continue
		}
		if ok, next := matchByte(pattern, p, text[t]); ok {
			p, t = next, t+1
			continue
		}
		if star < 0 {
			return false
		}
		again++
		p, t = star, again
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchByte matches b with what stands at p, and returns where that ends.
func matchByte(pattern string, p int, b byte) (ok bool, next int) {
	if p >= len(pattern) {
		return false, p
	}
	switch c := pattern[p]; {
	case c == '?':
		return true, p + 1
	case c == '[':
		return matchClass(pattern, p+1, b)
	case c == '\\' && p+1 < len(pattern):
		return pattern[p+1] == b, p + 2
	default:
		return c == b, p + 1
	}
}

// matchClass matches b with the class that begins at p, behind its bracket.
func matchClass(pattern string, p int, b byte) (ok bool, next int) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			ok = ok || pattern[p] == b
		case p+2 < len(pattern) && pattern[p+1] == '-':
			from, to := min(pattern[p], pattern[p+2]), max(pattern[p], pattern[p+2])
			ok = ok || from <= b && b <= to
			p += 2
		default:
			ok = ok || pattern[p] == b
		}
	}
	return ok != not, min(p+1, len(pattern))
}
