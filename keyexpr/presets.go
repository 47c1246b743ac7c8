package keyexpr

import "strings"

// Lock4j returns the template that makes the key of a method annotated with @Lock4j(name = …, keys = …): lock4j, a
// colon, the name or else class and method without anything between them, a #, and the keys with dots between them. The
// prefix lock4j can be configured in Java; replace it in the result if it was.
//
// Checked against github.com/baomidou/lock4j at 381551f (2.2.7): LockOpsInterceptor, DefaultLockKeyBuilder. A lock of its
// Redisson executor is a Redisson lock of that name; those of its other executors are not.
func Lock4j(name string, keys []string, opts ...JavaOption) (string, error) {
	j := newJava(opts)
	if name == "" {
		if j.method == "" {
			return "", errAt("", 0, "a @Lock4j without a name has its key from the Java method: add Method(class, name)")
		}
		name = j.class + j.method
	}
	key := javaKey{{text: "lock4j:" + name + "#"}}
	first := true
	for _, text := range keys {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if !first {
			key = append(key, javaPart{text: "."})
		}
		parts, err := j.key(text, false)
		if err != nil {
			return "", err
		}
		key, first = append(key, parts...), false
	}
	return key.merged("").write(strings.Join(keys, " "))
}

// Klock returns the template that makes the key of a method annotated with @Klock(name = …, keys = …): lock, a dot, the
// name or else class and method with a dot between them, and each key behind a dash. The values of parameters that are
// annotated with @KlockKey come last; add them to the keys as #parameter.
//
// Checked against github.com/kekingcn/spring-boot-klock-starter at 8700bc0: LockInfoProvider, BusinessKeyProvider. Its
// locks are Redisson's.
func Klock(name string, keys []string, opts ...JavaOption) (string, error) {
	j := newJava(opts)
	if name == "" {
		if j.method == "" {
			return "", errAt("", 0, "a @Klock without a name has its key from the Java method: add Method(class, name)")
		}
		name = j.executionPath()
	}
	key := javaKey{{text: "lock." + name}}
	for _, text := range keys {
		if text == "" {
			continue
		}
		parts, err := j.key(text, false)
		if err != nil {
			return "", err
		}
		key = append(append(key, javaPart{text: "-"}), parts...)
	}
	return key.merged("").write(strings.Join(keys, " "))
}

// Alturkovic returns the template that makes the keys of a method annotated with @RedisLocked(storeId = …, prefix = …,
// expression = …) or its kin: the store, a colon, the prefix, and what the expression says. An expression that is a list
// makes a key of each element. An empty store is distributed_lock, an empty expression #executionPath.
//
// Checked against github.com/alturkovic/distributed-lock at 5458750: SpelKeyGenerator, SimpleRedisLock, MultiRedisLock.
// Only the key is the same: those locks are plain strings in Redis, and no locks to Redisson.
func Alturkovic(store, prefix, expression string, opts ...JavaOption) (string, error) {
	if store == "" {
		store = "distributed_lock"
	}
	if expression == "" {
		expression = "#executionPath"
	}
	key, err := newJava(opts).key(expression, false)
	if err != nil {
		return "", err
	}
	return key.template(expression, store+":"+prefix)
}

// Redisson returns the template that makes the name that a program in Java gives to redisson.getLock: an expression such
// as "order:" + order.getId(), or String.format("order:%s", id).
//
// Checked against the Java language: Redisson takes the name as it is.
func Redisson(expression string, opts ...JavaOption) (string, error) {
	j := newJava(opts)
	j.plain = true
	key, err := j.key(expression, false)
	if err != nil {
		return "", err
	}
	return key.template(expression, "")
}
