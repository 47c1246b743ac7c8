package redistest

import (
	"strings"
	"testing"
)

func TestStartCluster(t *testing.T) {
	c := StartCluster(t, 1)
	c.Failover(t, 0)
}

func TestStartSentinels(t *testing.T) {
	s := StartSentinels(t)
	s.Failover(t)
}

// Without full coverage, a node is content before it knows the slots of the others. Half of these clusters had such a node.
func TestStartClusterWithoutFullCoverage(t *testing.T) {
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for _, n := range StartCluster(t, 0, "--cluster-require-full-coverage", "no").Masters {
				if info := n.Do(t, "cluster", "info").(string); !strings.Contains(info, "cluster_slots_ok:16384") {
					t.Errorf("a node knows too few slots:\n%s", info)
				}
			}
		})
	}
}
