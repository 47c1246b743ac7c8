package spel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// Before the first stage: what lock libraries put around expressions. A preset computes nothing. It
// gives literals and expressions, in the order in which the library puts them together, and says
// which version it was checked against, and how.

// Lock4j is the key of a method annotated with @Lock4j(name = …, keys = …): lock4j, a colon, the
// name or else class and method without anything between them, a #, and the keys with dots
// between them. A list is one key, with commas between its elements. #root is the bean. The
// prefix lock4j can be configured in Java: [Prefix] says so.
//
// Checked against com.baomidou:lock4j-core 2.2.7: LockInterceptor, DefaultLockKeyBuilder. A lock
// of its Redisson executor is a Redisson lock of that name; those of its other executors are
// not. An expression that is empty is left out, dot and all, as lock4j does.
//
// The method has no parameters in its default name, so that overloads share a lock in Java, and
// so they do here. An expression that comes to a Date or to a blank text makes lock4j throw; the
// former is refused by type, the latter is left to the request.
func Lock4j(name string, keys []string, opts ...Option) *Key {
	k := newKey(annotation("Lock4j", name, keys), opts)
	k.one = true
	if strings.TrimSpace(name) == "" {
		name = k.ofMethod("@Lock4j", "")
	}
	k.literal(cmp.Or(k.java.prefix, "lock4j") + ":" + name + "#")
	dot := ""
	for _, text := range keys {
		if text == "" {
			continue
		}
		k.literal(dot)
		k.add(text, false)
		dot = "."
	}
	return k
}

// Klock is the key of a method annotated with @Klock(name = …, keys = …): lock, a dot, the name
// or else class and method with a dot between them, and each key behind a dash. The values of
// parameters that are annotated with @KlockKey come last; add them to the keys as #parameter.
// #root is null.
//
// Checked against cn.keking:spring-boot-klock-starter 1.4-RELEASE: LockInfoProvider,
// BusinessKeyProvider. Its locks are Redisson's. Values are spelt by toString and not converted,
// which differs for lists.
//
// A key that is null is written as four letters by klock. It is refused here, as everywhere.
func Klock(name string, keys []string, opts ...Option) *Key {
	k := newKey(annotation("Klock", name, keys), opts)
	if name == "" {
		name = k.ofMethod("@Klock", ".")
	}
	k.literal("lock." + name)
	for _, text := range keys {
		if text == "" {
			continue
		}
		k.literal("-")
		k.add(text, false)
	}
	k.toString = true
	return k
}

// Alturkovic is the keys of a method annotated with @RedisLocked(storeId = …, prefix = …,
// expression = …) or its kin: the store, a colon, the prefix, and what the expression says. A
// list makes a key of each element. An empty store is distributed_lock, an empty expression
// #executionPath. #root is the bean.
//
// Checked against github.com/alturkovic/distributed-lock at 5458750, by reading:
// SpelKeyGenerator, SimpleRedisLock, MultiRedisLock. Only the key is the same: those locks are
// plain strings in Redis, and no locks to Redisson. Its keys are lists by nature: a method may
// lock several.
//
// SpelKeyGenerator converts what the expression comes to into a list of Strings, and prefixes
// each. #executionPath is its own variable, of class and method.
func Alturkovic(store, prefix, expression string, opts ...Option) *Key {
	expression = cmp.Or(expression, "#executionPath")
	k := newKey(annotation("RedisLocked", prefix, []string{expression}), opts)
	k.java.path = true
	k.prefix = cmp.Or(store, "distributed_lock") + ":" + prefix
	k.add(expression, false)
	return k
}

// Redisson is the name that a program in Java gives to redisson.getLock: an expression such as
// "order:" + order.getId(), in the code rather than in an annotation.
//
// Checked against the Java language: Redisson takes the name as it is. The program's own objects
// have getters only; characters, floats and String.format are refused.
func Redisson(expression string, opts ...Option) *Key {
	k := newKey(expression, opts)
	k.java.plain = true
	k.add(expression, false)
	return k
}

// Prefix says that lock4j.lock-key-prefix is configured in Java. It is a setting of the whole
// program in Java, and one of each key here.
func Prefix(prefix string) Option { return option(func(j *java) { j.prefix = prefix }) }

func (k *Key) literal(text string) { k.parts = append(k.parts, source{text: text}) }

// ofMethod returns the name that an annotation without one has: that of the class and the method.
func (k *Key) ofMethod(annotation, between string) string {
	if k.java.method == "" && k.err == nil {
		k.err = &keyexpr.Error{Text: k.text, Reason: "a " + annotation + " without a name has its key from the Java method: add Method(class, name)"}
	}
	return k.java.class + between + k.java.method
}

// annotation writes an annotation as Java has it, for logs and registries.
func annotation(name, label string, keys []string) string {
	if label != "" {
		keys = slices.Insert(slices.Clone(keys), 0, label)
	}
	if len(keys) == 0 {
		return "@" + name + "()"
	}
	return "@" + name + "(\"" + strings.Join(keys, "\", \"") + "\")"
}
