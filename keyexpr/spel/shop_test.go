package spel

import "github.com/latchkey-go/latchkey/keyexpr"

// shop is a request whose fields have one type each in Java, so that every result can be worked out from Java's own rules.
type shop struct {
	Int     int32 // int
	Long    int64 // long
	Byte    int8
	Short   int16
	MaxInt  int32
	MinInt  int32
	MaxLong int64
	MinLong int64
	Loose   int // int or long: nobody knows
	Text    string
	Empty   string
	Digits  string
	Null    *string
	NoLong  *int64
	Yes     bool
	No      bool
	Phase   phase  // an enum
	Status  status // a String or an enum
	Ref     ident  // a UUID
	Ints    []int32
	Longs   []int64
	Texts   []string
	Holes   []*string // {"a", null, "c"}
	None    []string  // empty, and not null
	Unset   []string  // nil: null or empty in Java
	Nested  [][]int32
	Attrs   map[string]string
	Counts  map[string]int64
	Nothing map[string]string // nil
	Owner   *javaOwner
	Nobody  *javaOwner
	Lines   []javaItem
	Blob    []byte
}

func newShop() *shop {
	a, c := "a", "c"
	return &shop{
		Int: 7, Long: 7, Byte: 7, Short: 7, Loose: 7, MaxInt: 1<<31 - 1, MinInt: -1 << 31, MaxLong: 1<<63 - 1, MinLong: -1 << 63,
		Text: "Text", Digits: "42", Yes: true, Phase: 1, Status: "PAID", Ref: ident{0xab},
		Ints: []int32{3, 1, 2}, Longs: []int64{3, 1, 2}, Texts: []string{"x", "y", "x"}, Holes: []*string{&a, nil, &c}, None: []string{},
		Nested: [][]int32{{1, 2}, {}, {3}}, Attrs: map[string]string{"k": "v", "": "empty", "a b": "blank"}, Counts: map[string]int64{"n": 5},
		Owner: &javaOwner{"kim"}, Lines: []javaItem{{"pen", 2}, {"ink", 0}, {"cap", 5}}, Blob: []byte{1, 0xff},
	}
}

var shopRoots = keyexpr.Roots{"req": keyexpr.TypeFor[*shop]()}
