package es

import (
	"container/list"
	"sync"
)

// cachedStates bounds the cache; the states kept in it are small (roles of a user).
const cachedStates = 10_000

// stateCache keeps folded states by stream, the least recently used ones go first.
// A cached state is never trusted alone: the log is asked for what came since.
type stateCache struct {
	mu    sync.Mutex
	items map[string]*list.Element
	order list.List
}

type cacheItem struct {
	key   string
	value any
}

func (c *stateCache) get(key string) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheItem).value, true
}

func (c *stateCache) put(key string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items == nil {
		c.items = map[string]*list.Element{}
	}
	if e, ok := c.items[key]; ok {
		e.Value.(*cacheItem).value = value
		c.order.MoveToFront(e)
		return
	}
	c.items[key] = c.order.PushFront(&cacheItem{key, value})
	for len(c.items) > cachedStates {
		last := c.order.Back()
		delete(c.items, last.Value.(*cacheItem).key)
		c.order.Remove(last)
	}
}
