package omnisim

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cosi-project/runtime/pkg/state"

	"github.com/siderolabs/omni/client/pkg/constants"
	"github.com/siderolabs/omni/client/pkg/omni/resources/omni"
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

// DeleteCluster removes a cluster from an Omni, simulated or real, as omnictl does, and waits until it is gone. It is no error if
// there is none.
func DeleteCluster(ctx context.Context, st state.State, cluster string) error {
	result, err := template.WithCluster(cluster).Delete(ctx, st)
	if err != nil {
		return fmt.Errorf("find what cluster %q has: %w", cluster, err)
	}

	for _, phase := range result.Destroy {
		for _, item := range phase {
			if _, err := st.Teardown(ctx, item.Metadata()); err != nil && !state.IsNotFoundError(err) {
				return fmt.Errorf("tear down %s: %w", item.Metadata(), err)
			}
		}

		for _, item := range phase {
			if err := st.TeardownAndDestroy(ctx, item.Metadata()); err != nil && !state.IsNotFoundError(err) {
				return fmt.Errorf("destroy %s: %w", item.Metadata(), err)
			}
		}
	}

	return nil
}

// MoveManifestGroups gives the manifest groups of users in a cluster the IDs that templates of another version of Omni have, by
// their place in the list: "200-cluster-demo-dns" up to 1.10, if numbered, and "cluster-demo-dns" from 1.11 on. Each is made
// under the new ID, and the old one is destroyed then, as such a template does it.
//
// What is known: the IDs of 1.11 are told by the pull request that changed the client's templates, whose server takes a group
// whose objects are in another one for moved, and knows both forms of the ID then. Whether a server also moves the groups that
// it has on its first start is unknown: nobody tried. So Server.Upgrade moves none.
func MoveManifestGroups(ctx context.Context, st state.State, cluster string, numbered bool) error {
	groups, err := listOf(ctx, st, omni.NewKubernetesManifestGroup(""), cluster)
	if err != nil {
		return fmt.Errorf("list the manifest groups of cluster %q: %w", cluster, err)
	}

	place := constants.PatchBaseWeightCluster

	for _, old := range groups {
		name, named := old.Metadata().Annotations().Get(omni.KubernetesManifestName)
		if !named || old.Metadata().Owner() != "" {
			continue
		}

		id := "cluster-" + cluster + "-" + name
		if numbered {
			id = fmt.Sprintf("%03d-%s", place, id)
		}

		place++

		moved := omni.NewKubernetesManifestGroup(id)
		*moved.Metadata().Labels(), *moved.Metadata().Annotations() = *old.Metadata().Labels(), *old.Metadata().Annotations()
		moved.TypedSpec().Value = old.TypedSpec().Value.CloneVT()

		if err := st.Create(ctx, moved); err != nil {
			return fmt.Errorf("create manifest group %q: %w", id, err)
		}

		if err := st.TeardownAndDestroy(ctx, old.Metadata()); err != nil {
			return fmt.Errorf("destroy manifest group %q: %w", old.Metadata().ID(), err)
		}
	}

	return nil
}
