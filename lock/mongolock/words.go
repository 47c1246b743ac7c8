package mongolock

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// words puts questions into filters and updates, with the server's now in them.
type words interface {
	// free matches documents that take may change, and inserts one if there is none.
	free(q question) bson.D
	// take makes q's holder that of a document that is free.
	take(q question) any
	// held matches the document if it is the holder's and has not expired.
	held(q question) bson.D
	// occupied matches the document if a take of q would not get it.
	occupied(q question) bson.D
	// extend makes the lease end in q.ms, if it would end earlier.
	extend(q question) any
	// end makes the lease end in q.ms, whenever it would.
	end(q question) any
}

func doc(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }

func list(values ...any) bson.A { return values }

// pipeline has the server put in its own $$NOW. A take changes the document if it is free, and leaves it as it is otherwise, so that
// the answer says who holds it. An upsert must not have a condition on $$NOW in its filter.
type pipeline struct{}

const now = "$$NOW"

// verbatim keeps the server from reading expressions in what users have named.
func verbatim(text string) bson.D { return doc("$literal", text) }

func typeIs(field string, types ...any) bson.D {
	return doc("$in", list(doc("$type", "$"+field), types))
}

// Times are compared as numbers: there are servers that get dates of two makes wrong.
var (
	untilNumber = doc("$convert", bson.D{{Key: "input", Value: "$" + fieldUntil}, {Key: "to", Value: "long"}, {Key: "onError", Value: nil}})
	nowNumber   = doc("$toLong", now)
)

func compare(operator string) bson.D { return doc(operator, list(untilNumber, nowNumber)) }

// atLeast is the present lockUntil, but not less than q.ms from now: a request that comes twice, or late, shortens nothing.
func (q question) atLeast() bson.D {
	return doc("$toDate", doc("$max", list(untilNumber, doc("$add", list(nowNumber, q.ms)))))
}

func (pipeline) free(q question) bson.D { return doc("_id", q.id) }

func (pipeline) take(q question) any {
	fresh := doc("$eq", list("$$ROOT", doc("_id", verbatim(q.id))))
	mine := doc("$eq", list("$"+fieldBy, verbatim(q.holder)))
	free := doc("$or", list(fresh, doc("$and", list(typeIs(fieldUntil, "date"), doc("$or", list(mine, compare("$lte")))))))
	set := bson.D{
		{Key: fieldUntil, Value: q.atLeast()},
		{Key: fieldAt, Value: now},
		{Key: fieldBy, Value: verbatim(q.holder)},
	}
	if q.counted {
		free = doc("$and", list(typeIs(fieldToken, "missing", "int", "long"), free))
		set = append(set, bson.E{Key: fieldToken, Value: doc("$add", list(doc("$ifNull", list("$"+fieldToken, int64(0))), int64(1)))})
	}
	taken := doc("$mergeObjects", list("$$ROOT", set))
	return mongo.Pipeline{doc("$replaceWith", doc("$cond", list(free, taken, "$$ROOT")))}
}

func (pipeline) held(q question) bson.D {
	return bson.D{{Key: "_id", Value: q.id}, {Key: fieldBy, Value: q.holder}, {Key: "$expr", Value: compare("$gt")}}
}

func (pipeline) occupied(q question) bson.D {
	locked := doc("$or", list(compare("$gt"), doc("$not", list(typeIs(fieldUntil, "date")))))
	return bson.D{{Key: "_id", Value: q.id}, {Key: "$expr", Value: locked}}
}

func (pipeline) extend(q question) any {
	return mongo.Pipeline{doc("$set", doc(fieldUntil, q.atLeast()))}
}

func (pipeline) end(q question) any {
	return mongo.Pipeline{doc("$set", doc(fieldUntil, doc("$add", list(now, q.ms))))}
}

// literal has the time in it that the server has told just before. A take of a document that is not free is an insert that
// fails, as it is with ShedLock.
type literal struct{}

func (q question) until() time.Time { return q.now.Add(time.Duration(q.ms) * time.Millisecond) }

func (literal) free(q question) bson.D {
	return bson.D{{Key: "_id", Value: q.id}, {Key: "$or", Value: list(doc(fieldUntil, doc("$lte", q.now)), doc(fieldBy, q.holder))}}
}

func (literal) take(q question) any {
	update := bson.D{
		{Key: "$max", Value: doc(fieldUntil, q.until())},
		{Key: "$set", Value: bson.D{{Key: fieldAt, Value: q.now}, {Key: fieldBy, Value: q.holder}}},
	}
	if q.counted {
		update = append(update, bson.E{Key: "$inc", Value: doc(fieldToken, int64(1))})
	}
	return update
}

func (literal) held(q question) bson.D {
	return bson.D{{Key: "_id", Value: q.id}, {Key: fieldBy, Value: q.holder}, {Key: fieldUntil, Value: doc("$gt", q.now)}}
}

func (literal) occupied(q question) bson.D {
	return bson.D{{Key: "_id", Value: q.id}, {Key: fieldUntil, Value: doc("$not", doc("$lte", q.now))}}
}

func (literal) extend(q question) any { return doc("$max", doc(fieldUntil, q.until())) }

func (literal) end(q question) any { return doc("$set", doc(fieldUntil, q.until())) }
