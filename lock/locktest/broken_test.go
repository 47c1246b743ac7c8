package locktest

import (
	"slices"

	"github.com/latchkey-go/latchkey/lock"
)

// brokenLocker breaks a promise, whose check for the given kind must notice.
type brokenLocker struct {
	name    string
	locker  func() lock.Locker
	kind    lock.Kind
	promise string
}

// broken are Lockers that break all the promises there are.
var broken = slices.Concat(brokenInGeneral, brokenOwners, brokenReplacers, brokenPeekers, brokenGatherers, brokenLevels)

var brokenInGeneral = []brokenLocker{
	{"no exclusion", noExclusion, lock.Exclusive, "one owner at a time"},
	{"no exclusion", noExclusion, lock.Exclusive, "a fresh owner is excluded"},
	{"readers meet writers", readersMeetWriters, lock.Read, "one owner at a time"},
	{"one owner for all", oneOwner, lock.Exclusive, "one owner at a time"},
	{"never wakes", neverWakes, lock.Exclusive, "an unbounded wait is served"},
	{"never wakes", neverWakes, lock.Exclusive, "a limited wait is served"},
	{"never wakes", neverWakes, lock.Exclusive, "one owner at a time"},
	{"never wakes", neverWakes, lock.Exclusive, "keys wake their own waiters, whatever is in them"},
	{"waits for ever", waitsForEver, lock.Exclusive, "a limited wait ends"},
	{"waits for ever", waitsForEver, lock.Exclusive, "no wait means one try"},
	{"does not wait", doesNotWait, lock.Exclusive, "a limited wait ends"},
	{"deaf to its context", deafToContext, lock.Exclusive, "a wait ends with the cause of its deadline"},
	{"leaky waiter", leakyWaiter, lock.Exclusive, "a cancelled wait leaves the line"},
	{"leaky waiter", leakyWaiter, lock.Exclusive, "no goroutine stays"},
	{"cause forgotten", causeForgotten, lock.Exclusive, "a wait ends with the cause of its deadline"},
	{"cause forgotten", causeForgotten, lock.Exclusive, "an ended context takes nothing"},
	{"takes for the gone", takesForTheGone, lock.Exclusive, "an ended context takes nothing"},
	{"bare busy", bareBusy, lock.Exclusive, "busy names the remaining lease"},
	{"remaining too long", remainingTooLong, lock.Exclusive, "busy names the remaining lease"},
	{"nobody has a name", namelessHolders, lock.Exclusive, "busy reports a holder of this process"},
	{"values dropped", valuesDropped, lock.Exclusive, "the hold's context carries values"},
	{"context stays", contextStays, lock.Exclusive, "release ends the hold's context"},
	{"lost silently", contextStays, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"lost silently", contextStays, lock.Exclusive, "MaxHold ends a hold"},
	{"notified late", notifiedLate, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"cause of loss forgotten", lossForgotten, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"loss not released", releaseHidesLoss, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"foreign release", foreignRelease, lock.Exclusive, "a released hold has no power over the next"},
	{"foreign release", foreignRelease, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"released twice", releasedTwice, lock.Exclusive, "a hold is released once"},
	{"dies with its request", diesWithRequest, lock.Exclusive, "a hold outlives the context of its request"},
	{"old clock runs on", oldClockRunsOn, lock.Exclusive, "a released lease ends nothing"},
	{"lease ignored", leaseIgnored, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"short lease", shortLease, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"max hold ignored", maxHoldIgnored, lock.Exclusive, "MaxHold ends a hold"},
	{"max hold ignored", maxHoldIgnored, lock.Exclusive, "MaxHold ends a longer lease"},
	{"keys trimmed", keysTrimmed, lock.Exclusive, "keys are independent, whatever is in them"},
	{"keys cut", keysCut, lock.Exclusive, "keys are independent, whatever is in them"},
	{"hash tags for keys", hashTags, lock.Exclusive, "keys are independent, whatever is in them"},
	{"anything goes", anythingGoes, lock.Exclusive, "invalid requests are refused"},
	{"more kinds than it says", good, lock.Exclusive, "other kinds are not supported"},
	{"goroutine for each hold", goroutineStays, lock.Exclusive, "no goroutine stays"},
	{"last come, first served", lastFirst, lock.Fair, "service is in the order of arrival"},
	{"readers exclude", readersExclude, lock.Read, "readers share"},
	{"readers exclude", readersExclude, lock.Read, "waiting readers are served together"},
	{"readers meet writers", readersMeetWriters, lock.Write, "a writer excludes readers"},
	{"no token", noToken, lock.Fenced, "tokens grow"},
	{"same token", sameToken, lock.Fenced, "tokens grow"},
	{"over the limit", overLimit, lock.Permit, "as many owners as the limit"},
	{"over the limit", overLimit, lock.Permit, "never more owners than the limit"},
	{"under the limit", underLimit, lock.Permit, "as many owners as the limit"},
	{"remains for ever", remainsForEver, lock.Exclusive, "a hold knows how long it remains good"},
	{"ended without an end", endedWithoutEnd, lock.Exclusive, "a hold knows how long it remains good"},
}

// brokenOwners are wrong about who re-enters what, and about how long that lasts.
var brokenOwners = []brokenLocker{
	// Who is a stranger.
	{"one owner for all", oneOwner, lock.Exclusive, "one owner at a time"},
	{"siblings share", siblingsShare, lock.Exclusive, "siblings take turns"},
	{"siblings share", siblingsShare, lock.Exclusive, "siblings exclude each other"},
	{"new owner ignored", newOwnerIgnored, lock.Exclusive, "a fresh owner is excluded"},
	{"released counts", releasedCounts, lock.Exclusive, "a released ancestor is none"},
	{"released counts", releasedCounts, lock.Exclusive, "a lost ancestor is none"},
	{"all are related", relatedIs(true), lock.Exclusive, "busy reports a related holder"},
	{"nobody is related", relatedIs(false), lock.Exclusive, "busy reports a related holder"},
	{"all are here", hereIs(true), lock.Exclusive, "random calls get what they should"},
	{"nobody is here", hereIs(false), lock.Exclusive, "busy reports a holder of this process"},

	// Who re-enters.
	{"chain hidden", chainHidden, lock.Exclusive, "ancestors are the live holds"},
	{"not re-entrant", notReentrant, lock.Exclusive, "a nested call re-enters"},
	{"first nested only", firstNestedOnly, lock.Exclusive, "a nested call re-enters"},
	{"inner release frees", innerReleaseFrees, lock.Exclusive, "a nested call re-enters"},
	{"outer release frees", outerReleaseFrees, lock.Exclusive, "re-entry outlives the outer hold"},
	{"re-entry queues", reentryQueues, lock.Exclusive, "re-entry passes the queue"},
	{"one child only", oneChildOnly, lock.Exclusive, "siblings re-enter their common ancestor"},
	{"WithoutCancel cuts", withoutCancelCuts, lock.Exclusive, "WithoutCancel keeps the ancestors"},

	// Kinds.
	{"same kind only", sameKindOnly, lock.Exclusive, "kinds re-enter each other by the table"},
	{"same kind only", sameKindOnly, lock.Write, "kinds re-enter each other by the table"},
	{"kinds not named", kindsNotNamed, lock.Permit, "kinds re-enter each other by the table"},
	{"families wait", familiesWait, lock.Exclusive, "another family of kinds is refused at once"},
	{"families meet", familiesMeet, lock.Exclusive, "another family of kinds is refused at once"},
	{"kinds not named", kindsNotNamed, lock.Exclusive, "another family of kinds is refused at once"},
	{"kinds confused", kindsConfused, lock.Exclusive, "another family of kinds is refused at once"},
	{"readers upgrade", readersUpgrade, lock.Read, "a reader does not become a writer"},
	{"upgrade waits", upgradeWaits, lock.Read, "a reader does not become a writer"},
	{"downgrade frees", outerReleaseFrees, lock.Write, "a writer may read and then stop writing"},
	{"lost writers stay", writersStay, lock.Write, "a writer that is lost leaves its reader among readers"},

	// Leases.
	{"the first lease frees", shortLeaseFrees, lock.Exclusive, "a shorter nested lease ends only the nested hold"},
	{"the first lease frees", shortLeaseFrees, lock.Exclusive, "a longer nested lease outlives the lease of the outer hold"},
	{"outer release frees", outerReleaseFrees, lock.Exclusive, "a longer nested lease outlives the release of the outer hold"},
	{"nested for ever", nestedForEver, lock.Exclusive, "the end of a nested lease frees the lock"},
	{"lost twice", lostTwice, lock.Exclusive, "a holder is notified of its end before the next one starts"},
	{"lost twice", lostTwice, lock.Exclusive, "a shorter nested lease ends only the nested hold"},
	{"does not keep", doesNotKeep, lock.Exclusive, "a kept lock stays for a while"},
	{"keep ends with the outer hold", keepEndsWithOuter, lock.Exclusive, "a nested hold keeps the lock beyond the outer one"},
	{"does not extend", doesNotExtend, lock.Exclusive, "a hold is extended and not shortened"},
	{"Extend shortens", extendShortens, lock.Exclusive, "a hold is extended and not shortened"},
	{"does not extend", doesNotExtend, lock.Exclusive, "an extended hold ends"},
	{"extends for ever", extendsForEver, lock.Exclusive, "an extended hold ends"},
	{"max hold ignored", maxHoldIgnored, lock.Exclusive, "MaxHold bounds Extend"},
	{"extends the ended", extendsTheEnded, lock.Exclusive, "an ended hold is not extended"},

	// At random.
	{"siblings share", siblingsShare, lock.Exclusive, "random calls get what they should"},
}
