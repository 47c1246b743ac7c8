// Package interop tests zklock beside Apache Curator, which runs in a Java process of its own. The tests need a JDK 17, Maven and
// ZooKeeper, and run when LATCHKEY_INTEROP=1 or LATCHKEY_REQUIRE=zookeeper says so.
package interop
