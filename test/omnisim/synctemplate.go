package omnisim

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/template"
)

// SyncTemplate makes an Omni, simulated or real, match a cluster template, as omnictl does: creates, then updates. It
// destroys nothing. Tests use it as a second client beside the operator.
func SyncTemplate(ctx context.Context, st state.State, text []byte) error {
	loaded, err := template.Load(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("load the template: %w", err)
	}

	if err := loaded.Validate(); err != nil {
		return fmt.Errorf("validate the template: %w", err)
	}

	result, err := loaded.Sync(ctx, st)
	if err != nil {
		return fmt.Errorf("compare the template: %w", err)
	}

	for _, item := range result.Create {
		if err := st.Create(ctx, item); err != nil {
			return fmt.Errorf("create %s: %w", item.Metadata(), err)
		}
	}

	for _, update := range result.Update {
		if err := st.Update(ctx, update.New); err != nil {
			return fmt.Errorf("update %s: %w", update.New.Metadata(), err)
		}
	}

	return nil
}
