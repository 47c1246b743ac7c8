// Package docs has no code but its tests. They type the commands of the documents in docs, and hold the code in
// them against the files that it is quoted from.
package docs
