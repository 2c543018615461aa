package foreign

import "context"

// TakeBudget takes the whole budget, until it is given back.
func TakeBudget(ctx context.Context) func() {
	if err := parsing.Acquire(ctx, budgetBytes); err != nil {
		panic(err)
	}

	return func() { parsing.Release(budgetBytes) }
}
