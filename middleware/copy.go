package middleware

import (
	"io"
)

// ReadFrom lets files go to the socket without a copy, if the server can do that and the response is not small.
func (w *writer) ReadFrom(src io.Reader) (n int64, err error) {
	if w.holds() && w.limit == heldBack {
		n, err = io.Copy(onlyWriter{w}, io.LimitReader(src, heldBack+1))
		if err != nil || w.holds() && !w.head {
			return n, err
		}
	}
	m, err := w.readFrom(src)
	return n + m, err
}

type onlyWriter struct{ io.Writer }

func (w *writer) readFrom(src io.Reader) (n int64, err error) {
	if err := w.refusal(); err != nil {
		return 0, err
	}
	switch most := w.length - w.written - 1; {
	case w.holds():
	case w.length < 0:
		n, err = io.Copy(w.ResponseWriter, src)
		w.written += n
		return n, w.blame(err)
	case most > 0:
		n, err = copyMost(w.ResponseWriter, src, most)
		w.written += n
		if err != nil || n < most {
			return n, w.blame(err)
		}
	}
	m, err := io.Copy(onlyWriter{w}, src)
	return n + m, err
}

// copyMost copies at most that many bytes. An io.LimitedReader within another hides its file from the socket.
func copyMost(w io.Writer, src io.Reader, most int64) (int64, error) {
	l, ok := src.(*io.LimitedReader)
	if !ok {
		return io.Copy(w, io.LimitReader(src, most))
	}
	n, err := io.Copy(w, &io.LimitedReader{R: l.R, N: min(l.N, most)})
	l.N -= n
	return n, err
}
