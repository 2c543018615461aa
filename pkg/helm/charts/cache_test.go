package charts

import "testing"

func TestCacheDropsWhatWasNotUsedForLongest(t *testing.T) {
	c := newCache(10)
	c.put("a", "A", 4)
	c.put("b", "B", 4)

	if c.get("a") != "A" {
		t.Fatal("a is gone")
	}

	c.put("c", "C", 4)

	for key, want := range map[string]any{"a": "A", "b": nil, "c": "C"} {
		if got := c.get(key); got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}

	if c.total != 8 {
		t.Errorf("the total is %d, want 8", c.total)
	}
}

func TestCacheKeepsNothingTooLarge(t *testing.T) {
	c := newCache(10)
	c.put("a", "old", 1)
	c.put("a", "A", 11)

	if got := c.get("a"); got != nil {
		t.Errorf("a is %v", got)
	}

	if c.total != 0 || c.order.Len() != 0 {
		t.Errorf("total %d, %d entries", c.total, c.order.Len())
	}
}
