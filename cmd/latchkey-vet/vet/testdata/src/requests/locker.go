package requests

import "github.com/latchkey-go/latchkey/lock"

type guardLocker = lock.Locker
