package redisson

// claimHeap has the claim that is due first at its top.
type claimHeap []*claim

func (h claimHeap) Len() int           { return len(h) }
func (h claimHeap) Less(i, j int) bool { return h[i].due().Before(h[j].due()) }
func (h claimHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is heap's.
func (h *claimHeap) Push(x any) {
	cl := x.(*claim)
	cl.index = len(*h)
	*h = append(*h, cl)
}

// Pop is heap's.
func (h *claimHeap) Pop() any {
	cl := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	cl.index = -1
	return cl
}
