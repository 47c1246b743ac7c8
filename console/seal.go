package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
)

// seal turns keys that may not be shown into links and marks, and links back into keys, with secrets that nobody else has. The
// same key has the same link and mark, as long as the process lives.
type seal struct {
	secret []byte
	aead   cipher.AEAD
}

func newSeal() *seal {
	keys := make([]byte, 64)
	_, _ = rand.Read(keys)               // never fails
	block, _ := aes.NewCipher(keys[:32]) // never fails: 32 bytes are a key
	aead, _ := cipher.NewGCM(block)      // never fails: AES has the block size that this wants
	return &seal{secret: keys[32:], aead: aead}
}

func (s *seal) sum(purpose, text string) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(purpose + "\x00" + text))
	return mac.Sum(nil)
}

// mark is some digits that distinguish a key from others.
func (s *seal) mark(key string) string { return hex.EncodeToString(s.sum("mark", key)[:4]) }

// id is a key as the id of an element: longer than a mark, as no two may be equal.
func (s *seal) id(key string) string { return hex.EncodeToString(s.sum("id", key)[:12]) }

// close returns text as something that only open can read. The nonce is made of the text: equal nonces mean equal texts.
func (s *seal) close(text string) string {
	nonce := s.sum("nonce", text)[:s.aead.NonceSize()]
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, []byte(text), nil))
}

var errSeal = errors.New("made by another process")

func (s *seal) open(sealed string) (string, error) {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	n := s.aead.NonceSize()
	if err != nil || len(data) < n {
		return "", errSeal
	}
	text, err := s.aead.Open(nil, data[:n], data[n:], nil)
	if err != nil {
		return "", errSeal
	}
	return string(text), nil
}
